"""`StackGuard`, the base class of guards: a Lambda function that AWS runs every five minutes.

At the stack's end of life, or when its budget is spent, the guard terminates the most expensive resources and deletes
the stack. Every resource with an hourly price must depend on the guard, so that the guard is created first and deleted
last. It then also deletes a stack that was created only in part.
"""

from collections.abc import Mapping
from typing import cast

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from shoal_guard.functions import function
from shoal_guard.grants import accept, accept_pattern, allow, region_in_rule

_EVERY = Duration.minutes(5)
_LONGEST = Duration.minutes(4)
"""Timeout of the function. It is shorter than the interval between rounds, so that two rounds do not overlap."""
_WARM_UP = cloudwatch.CfnAlarm.WarmUpConfigurationProperty(warm_up_period_duration_in_minutes=30)
_MISSED = 3
"""Number of consecutive failed or missed rounds after which an alarm sends a mail."""
_LONGEST_NAME = 100
"""Longest display name of an SNS topic, in characters."""


class StackGuard(Construct):
    """The guard's function, its schedule and, with a mail address, an SNS topic for warnings."""

    function: lambda_.Function
    role: iam.Role
    topic: sns.Topic | None

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        mail: str | None,
        tag: str,
        groups: str,
        settings: Mapping[str, object],
    ) -> None:
        """Create the guard of the stack or deployment `name`.

        Args:
            scope: A construct in the stack.
            construct_id: The construct's id.
            name: Name of the stack or deployment in messages, and value of the tag.
            mail: Address for warnings, or None for no warnings.
            tag: Key of the tag that all guarded resources have. The guard may change only tagged resources.
            groups: Name pattern of the auto scaling groups that the guard may change.
            settings: All other fields of `handlers.guard.rules.GuardSettings`.
        """
        super().__init__(scope, construct_id)
        self._name, self._tag = name, tag
        self.topic = self._topic(mail) if mail else None
        values = {
            "deployment": name,
            "stack": Stack.of(self).stack_id,
            **({"topic": self.topic.topic_arn} if self.topic else {}),
            **settings,
        }
        self.function, self.role = function(
            self,
            description="Terminates idle nodes and clusters, and deletes the stack at the end of its life",
            files=["guard/", "guard/*.py"],
            handler="guard.main.handler",
            timeout=_LONGEST,
            environment={"SETTINGS": Stack.of(self).to_json_string(values)},
        )
        self._allow([str(settings[each]) for each in ("account", "extension")], groups)
        events.Rule(
            self,
            "Clock",
            description=f"Runs the guard of {name}",
            schedule=events.Schedule.rate(_EVERY),
            targets=[targets.LambdaFunction(self.function)],
        )
        if self.topic:
            self._alarms(self.topic)

    def _topic(self, mail: str) -> sns.Topic:
        topic = sns.Topic(self, "Topic", display_name=f"Guard {self._name}"[:_LONGEST_NAME], enforce_ssl=True)
        accept(
            topic,
            "CKV_AWS_26",
            "Alarms cannot publish to a topic with AWS's key (AWS re:Post, 'How do I configure a CloudWatch alarm with "
            "an encrypted SNS topic?', read 2026-11-29). A customer managed key would outlive the stack by a week, "
            "and messages leave the topic as mails anyway.",
        )
        topic.add_subscription(subscriptions.EmailSubscription(mail))
        return topic

    def _alarms(self, topic: sns.Topic) -> None:
        """Add alarms that send a mail if the guard fails repeatedly or does not run."""
        watching = []
        for child, metric, comparison, missing, problem in (
            (
                "Failing",
                self.function.metric_errors(period=_EVERY),
                cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
                cloudwatch.TreatMissingData.NOT_BREACHING,
                f"failed {_MISSED} times in a row; its log has the error",
            ),
            (
                "Silent",
                self.function.metric_invocations(period=_EVERY),
                cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                cloudwatch.TreatMissingData.BREACHING,
                f"has not run for {_MISSED * _EVERY.to_minutes():g} minutes; check the EventBridge rule that runs it",
            ),
        ):
            alarm = cloudwatch.Alarm(
                self,
                child,
                alarm_description=f"The guard of '{self._name}' {problem}. Until it works again, stop costly resources "
                "yourself.",
                metric=metric,
                threshold=1,
                evaluation_periods=_MISSED,
                comparison_operator=comparison,
                treat_missing_data=missing,
            )
            alarm.add_alarm_action(actions.SnsAction(topic))
            # Without a warm-up period the alarm fires before the first round. If no round ever runs, it remains in that
            # state and sends no mail (CloudWatch user guide, "Alarm warm-up periods", read on 2026-11-29).
            cast(cloudwatch.CfnAlarm, alarm.node.default_child).warm_up_configuration = _WARM_UP
            watching.append(alarm.alarm_arn)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"ArnEquals": {"aws:SourceArn": watching}},
            )
        )

    def _allow(self, parameters: list[str], groups: str) -> None:
        """Grant the function its permissions, limited to its own stack where AWS supports this."""
        stack = Stack.of(self)
        account, extension = (
            stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))
            for name in parameters
        )
        self.grant("cloudformation", "DescribeStacks", "ListStackResources", "DeleteStack", on=stack.stack_id)
        self.grant("ssm", "GetParameters", on=account)
        self.grant("ssm", "GetParameters", on=extension)
        self.grant("ssm", "PutParameter", on=account)
        self.grant(
            "elasticmapreduce",
            *("DescribeCluster", "ListInstances", "ListSteps", "TerminateJobFlows"),
            on=stack.format_arn(service="elasticmapreduce", resource="cluster", resource_name="*"),
            where={f"elasticmapreduce:ResourceTag/{self._tag}": self._name},
        )
        self.grant(
            "autoscaling",
            *("SetDesiredCapacity", "UpdateAutoScalingGroup"),
            on=stack.format_arn(
                service="autoscaling", resource="autoScalingGroup:*:autoScalingGroupName", resource_name=groups
            ),
            where={f"aws:ResourceTag/{self._tag}": self._name},
        )
        self.grant("autoscaling", "DescribeAutoScalingGroups", on="*")
        self.grant("cloudwatch", "GetMetricStatistics", on="*")
        if self.topic:
            self.grant("sns", "Publish", on=self.topic.topic_arn)
        accept_pattern(self.role, "*", "These calls only read, and AWS cannot limit them to resources.")
        by_tag = "Its id is not known when the guard is created. The tag limits it to the guard's own stack."
        for service, resource in (
            ("elasticmapreduce", "cluster/*"),
            ("autoscaling", f"autoScalingGroup:*:autoScalingGroupName/{groups}"),
        ):
            place = f"arn:<AWS::Partition>:{service}:{region_in_rule(stack)}:<AWS::AccountId>:{resource}"
            accept_pattern(self.role, place, by_tag)

    def grant(
        self,
        service: str,
        *actions: str,
        on: str,
        where: Mapping[str, object] | None = None,
        operator: str = "StringEquals",
    ) -> None:
        """Allow the function the actions of a service on the resource `on`, if the condition `where` is true."""
        named = [f"{service}:{action}" for action in actions]
        allow(self.role, named, [on], {operator: where} if where else None)
