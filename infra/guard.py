"""Creates the guard of a deployment, a function that AWS runs every five minutes.

The guard ends idle nodes and clusters, and deletes the whole stack at the end of its life.

Every resource that costs money by the hour must depend on the guard, so that the guard is created first and deleted
last. So the guard also ends a stack that was created only in part, or whose deletion failed. The network, too: what EMR
leaves in it late fails the first deletion.
"""

from collections.abc import Mapping

from aws_cdk import Annotations, Duration, Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra import catalog, cost, sizing, topology
from infra.functions import function
from infra.roles import accept_keys, accept_pattern, allow

_EVERY = Duration.minutes(5)
_LONGEST = Duration.minutes(4)
"""Shorter than the interval, so that two runs do not overlap."""
_MAIL_AT = (80, 100)
"""Per cent of the budget at which AWS's own budget sends a mail."""


class Guard(Construct):
    """The function, its schedule, and its SNS topic; `topic` is None when the topology has no mail address.

    With a mail address and a budget there is also an AWS budget. It sends mails and stops nothing. It counts what AWS
    bills, hours late, and only if `shoal:deployment` is activated as a cost allocation tag in the account.
    """

    function: lambda_.Function
    role: iam.Role
    topic: sns.Topic | None

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: topology.Topology, deployment: str, data: s3.IBucket
    ) -> None:
        """Build the guard; `data` is the bucket to which the nodes write when they last worked."""
        super().__init__(scope, construct_id)
        self._deployment, self._data = deployment, data
        self._requests = f"{topology.REQUESTS_PREFIX}{deployment}.json"
        self.topic = self._topic(spec.guard.mail) if spec.guard.mail else None
        self.function, self.role = function(
            self,
            description="Ends idle nodes and clusters, and deletes the stack at the end of its life",
            files=["guard/", "guard/*.py"],
            handler="guard.main.handler",
            timeout=_LONGEST,
            environment={"SETTINGS": Stack.of(self).to_json_string(self._settings(spec))},
        )
        self._allow()
        events.Rule(
            self,
            "Clock",
            description=f"Runs the guard of {deployment}",
            schedule=events.Schedule.rate(_EVERY),
            targets=[targets.LambdaFunction(self.function)],
        )
        if spec.guard.budget and spec.guard.mail:
            self._budget(spec.guard.budget, spec.guard.mail, spec.region)

    def _settings(self, spec: topology.Topology) -> dict[str, object]:
        """The fields of `handlers.guard.rules.GuardSettings`."""
        keep = True if spec.data.bucket else spec.data.keep
        return {
            "deployment": self._deployment,
            "stack": Stack.of(self).stack_id,
            "bucket": self._data.bucket_name,
            **({} if keep is None else {"keep": keep}),
            "nodes_prefix": topology.NODES_PREFIX,
            "requests": self._requests,
            "start_tag": topology.TAG_START,
            "account": topology.guard_parameter(self._deployment),
            "extension": topology.extension_parameter(self._deployment),
            "max_hours": spec.guard.max_hours,
            "idle_minutes": spec.guard.idle_minutes,
            **({"budget": spec.guard.budget} if spec.guard.budget else {}),
            **({"topic": self.topic.topic_arn} if self.topic else {}),
            **self._prices(spec),
        }

    def _prices(self, spec: topology.Topology) -> dict[str, object]:
        """Dollars an hour. What has no price is not counted, and the guard says so; a budget is then an error."""
        found = prices(spec)
        if spec.guard.budget and (unpriced := found["unpriced"]):
            Annotations.of(self).add_error(f"the budget cannot be kept without the prices of {unpriced}")
        return found

    def _topic(self, mail: str) -> sns.Topic:
        topic = sns.Topic(
            self,
            "Topic",
            display_name=f"Shoal {self._deployment}",
            master_key=kms.Alias.from_alias_name(self, "Key", "alias/aws/sns"),
            enforce_ssl=True,
        )
        topic.add_subscription(subscriptions.EmailSubscription(mail))
        return topic

    def _budget(self, dollars: float, mail: str, region: str) -> None:
        budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=topology.budget_name(self._deployment, region),
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=dollars, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{topology.TAG_DEPLOYMENT}${self._deployment}"]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        notification_type="ACTUAL",
                        comparison_operator="GREATER_THAN",
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[budgets.CfnBudget.SubscriberProperty(subscription_type="EMAIL", address=mail)],
                )
                for percent in _MAIL_AT
            ],
        )

    def _allow(self) -> None:
        """The permissions of the guard, limited to its own deployment wherever AWS supports that."""
        stack, own = Stack.of(self), topology.TAG_DEPLOYMENT
        account, extension = (
            stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))
            for name in (topology.guard_parameter(self._deployment), topology.extension_parameter(self._deployment))
        )
        self._grant("cloudformation", "DescribeStacks", "ListStackResources", "DeleteStack", on=stack.stack_id)
        self._grant("ssm", "GetParameters", on=account)
        self._grant("ssm", "GetParameters", on=extension)
        self._grant("ssm", "PutParameter", on=account)
        runs = f"{topology.RUNS_PREFIX}{self._deployment}.*/{topology.END_NAME}"
        listed = [topology.NODES_PREFIX, self._requests, runs]
        self._grant("s3", "ListBucket", on=self._data.bucket_arn, where={"s3:prefix": listed}, operator="StringLike")
        self._grant("s3", "GetObject", "PutObject", on=self._data.arn_for_objects(self._requests))
        self._grant("s3", "GetObject", on=self._data.arn_for_objects(runs))
        accept_keys(self.role, self._data, runs)
        self._grant(
            "elasticmapreduce",
            *("DescribeCluster", "ListInstances", "ListSteps", "TerminateJobFlows"),
            on=stack.format_arn(service="elasticmapreduce", resource="cluster", resource_name="*"),
            where={f"elasticmapreduce:ResourceTag/{own}": self._deployment},
        )
        self._grant(
            "autoscaling",
            *("SetDesiredCapacity", "UpdateAutoScalingGroup"),
            on=stack.format_arn(
                service="autoscaling",
                resource="autoScalingGroup:*:autoScalingGroupName",
                resource_name=f"{stack.stack_name}-*",
            ),
            where={f"aws:ResourceTag/{own}": self._deployment},
        )
        self._grant("autoscaling", "DescribeAutoScalingGroups", on="*")
        self._grant("ec2", "DescribeInstances", on="*")
        self._grant("cloudwatch", "GetMetricStatistics", on="*")
        if self.topic:
            self._grant("sns", "Publish", on=self.topic.topic_arn)
        self._accept_findings(stack)

    def _grant(
        self,
        service: str,
        *actions: str,
        on: str,
        where: Mapping[str, object] | None = None,
        operator: str = "StringEquals",
    ) -> None:
        named = [f"{service}:{action}" for action in actions]
        allow(self.role, named, [on], {operator: where} if where else None)

    def _accept_findings(self, stack: Stack) -> None:
        accept_pattern(self.role, "*", "These calls only read, and AWS cannot limit them to resources.")
        by_tag = "It is created after the guard, so its id is not known; the tag limits it to this deployment."
        for service, resource in (
            ("elasticmapreduce", "cluster/*"),
            ("autoscaling", f"autoScalingGroup:*:autoScalingGroupName/{stack.stack_name}-*"),
        ):
            place = f"arn:<AWS::Partition>:{service}:{stack.region}:<AWS::AccountId>:{resource}"
            accept_pattern(self.role, place, by_tag)


def prices(spec: topology.Topology) -> dict[str, object]:
    """Dollars an hour: of a node with its volumes, by instance type, and of what runs as long as the stack.

    A spot node has the on-demand price, which is its upper limit. `unpriced` names what has no price, and counts as 0.
    """
    known = catalog.prices(spec.region)
    emr_types = spec.preprocessing.instance_types if spec.preprocessing else ()
    volumes = cost.known(known.volume_hourly, sizing.GPU_ROOT_GIB), cost.known(known.volume_hourly, cost.EMR_GIB)
    emr = {name: (cost.known(known.hourly, name), cost.known(known.emr_hourly, name), volumes[1]) for name in emr_types}
    gpu = {each.instance_type: (cost.known(known.hourly, each.instance_type), volumes[0]) for each in spec.training}
    return {
        "gpu": {name: sum(filter(None, parts)) for name, parts in gpu.items()},
        "emr": {name: sum(filter(None, parts)) for name, parts in emr.items()},
        "standing": cost.hourly_fixed(spec),
        "unpriced": ", ".join(cost.unknown(spec)),
    }
