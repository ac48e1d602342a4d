"""Functions, their schedules and logs, topics, queues, parameters and budgets.

Schedules come before functions, and functions before logs: a schedule starts its function again, which writes a log.
"""

from collections.abc import Mapping

from bootstrap.aws.account import ResourceRecord
from bootstrap.aws.ownership import Ownership, fetched_tags, generated_by, in_stack, never_owned
from bootstrap.removal import deletion
from bootstrap.removal.deletion import delete_call
from bootstrap.removal.kinds.kind import ResourceKind, always, list_call
from infra import topology


def _log_group_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """Log groups that Lambda creates are named after functions and have no tags."""
    lambdas, _, name = record["logGroupName"].rpartition("/")
    return (lambdas == "/aws/lambda" and generated_by(ownership.stack, name)) or _LOG_TAGS(ownership, record)


def _parameter_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    own = ownership.deployment is not None and record["Name"].startswith(f"/shoal/{ownership.deployment}/")
    return own or _PARAMETER_TAGS(ownership, record)


def _budget_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """Budgets have no tags. A budget of the user can filter by the deployment's tag, too."""
    if ownership.deployment is None:
        return False
    own = topology.budget_name(ownership.deployment, ownership.account.region)
    return bool(record["BudgetName"] == own)


def _subscription_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """By the tags of its topic, unless that is another account's, whose tags cannot be read."""
    topic, subscriber = record["TopicArn"].split(":")[4], record["Owner"]
    return bool(topic == subscriber) and _TOPIC_TAGS(ownership, record)


_LOG_TAGS = fetched_tags(
    "logs", "list_tags_for_resource", "tags", resourceArn=lambda record: record["arn"].removesuffix(":*")
)
_TOPIC_TAGS = fetched_tags("sns", "list_tags_for_resource", "Tags", ResourceArn="TopicArn")
_PARAMETER_TAGS = fetched_tags("ssm", "list_tags_for_resource", "TagList", ResourceType="Parameter", ResourceId="Name")

SERVICES: Mapping[str, ResourceKind] = {
    "event rule": ResourceKind(
        listing=list_call("events", "list_rules", "Rules"),
        identifier="Name",
        owned=fetched_tags("events", "list_tags_for_resource", "Tags", ResourceARN="Arn"),
        delete=deletion.rule,
        arn="events:rule/([^/]+)",
        cloudformation="AWS::Events::Rule",
    ),
    "schedule": ResourceKind(
        listing=list_call("scheduler", "list_schedules", "Schedules"),
        identifier="Name",
        owned=in_stack("AWS::Scheduler::Schedule", "Name"),
        delete=delete_call("scheduler", "delete_schedule", Name="id", GroupName="GroupName"),
        cloudformation="AWS::Scheduler::Schedule",
    ),
    "schedule group": ResourceKind(
        listing=list_call("scheduler", "list_schedule_groups", "ScheduleGroups"),
        identifier="Name",
        owned=fetched_tags("scheduler", "list_tags_for_resource", "Tags", ResourceArn="Arn"),
        delete=delete_call("scheduler", "delete_schedule_group", Name="id"),
        arn="scheduler:schedule-group/(.+)",
        cloudformation="AWS::Scheduler::ScheduleGroup",
    ),
    "lambda function": ResourceKind(
        listing=list_call("lambda", "list_functions", "Functions"),
        identifier="FunctionName",
        owned=fetched_tags("lambda", "list_tags", "Tags", Resource="FunctionArn"),
        delete=delete_call("lambda", "delete_function", FunctionName="id"),
        arn="lambda:function:(.+)",
        cloudformation="AWS::Lambda::Function",
    ),
    "lambda layer": ResourceKind(
        listing=list_call("lambda", "list_layers", "Layers"),
        identifier="LayerName",
        owned=never_owned,
        delete=deletion.layer,
        cloudformation="AWS::Lambda::LayerVersion",
    ),
    "log group": ResourceKind(
        listing=list_call("logs", "describe_log_groups", "logGroups"),
        identifier="logGroupName",
        owned=_log_group_is_owned,
        delete=delete_call("logs", "delete_log_group", logGroupName="id"),
        billed=always,
        arn=r"logs:log-group:(.+?)(?::\*)?",
        cloudformation="AWS::Logs::LogGroup",
    ),
    "cloudwatch alarm": ResourceKind(
        listing=list_call("cloudwatch", "describe_alarms", "MetricAlarms"),
        identifier="AlarmName",
        owned=fetched_tags("cloudwatch", "list_tags_for_resource", "Tags", ResourceARN="AlarmArn"),
        delete=delete_call("cloudwatch", "delete_alarms", AlarmNames="[id]"),
        billed=always,
        arn="cloudwatch:alarm:(.+)",
        cloudformation="AWS::CloudWatch::Alarm",
    ),
    "cloudwatch dashboard": ResourceKind(
        listing=list_call("cloudwatch", "list_dashboards", "DashboardEntries"),
        identifier="DashboardName",
        owned=in_stack("AWS::CloudWatch::Dashboard", "DashboardName"),
        delete=delete_call("cloudwatch", "delete_dashboards", DashboardNames="[id]"),
        billed=always,
        cloudformation="AWS::CloudWatch::Dashboard",
    ),
    "ssm parameter": ResourceKind(
        listing=list_call("ssm", "describe_parameters", "Parameters"),
        identifier="Name",
        owned=_parameter_is_owned,
        delete=delete_call("ssm", "delete_parameter", Name="id"),
        arn=r"ssm:parameter(/.+)",
        cloudformation="AWS::SSM::Parameter",
    ),
    "sns subscription": ResourceKind(
        listing=list_call("sns", "list_subscriptions", "Subscriptions"),
        identifier="SubscriptionArn",
        owned=_subscription_is_owned,
        delete=delete_call("sns", "unsubscribe", SubscriptionArn="id"),
        cloudformation="AWS::SNS::Subscription",
    ),
    "sns topic": ResourceKind(
        listing=list_call("sns", "list_topics", "Topics"),
        identifier="TopicArn",
        owned=_TOPIC_TAGS,
        delete=delete_call("sns", "delete_topic", TopicArn="id"),
        arn="sns:[^:]+",
        cloudformation="AWS::SNS::Topic",
    ),
    "sqs queue": ResourceKind(
        listing=lambda account: (
            {"Name": url.rpartition("/")[2], "Url": url} for url in account.items("sqs", "list_queues", "QueueUrls")
        ),
        identifier="Name",
        owned=fetched_tags("sqs", "list_queue_tags", "Tags", QueueUrl="Url"),
        delete=delete_call("sqs", "delete_queue", QueueUrl="Url"),
        arn="sqs:(.+)",
        cloudformation="AWS::SQS::Queue",
    ),
    "budget": ResourceKind(
        listing=lambda account: account.items("budgets", "describe_budgets", "Budgets", AccountId=account.number()),
        identifier="BudgetName",
        owned=_budget_is_owned,
        delete=deletion.budget,
        is_global=True,
        arn="budgets:budget/(.+)",
        cloudformation="AWS::Budgets::Budget",
    ),
}
