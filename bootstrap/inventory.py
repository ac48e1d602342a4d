"""What exists in an account and region, service by service, as the services' own list calls tell it.

This is the proof that a destroyed deployment left nothing: the tagging API misses some types, so every type that a
deployment can create is listed by its own service. The one thing that is easy to get wrong is what still counts:
a terminated instance or cluster, a deleted NAT gateway and the record of a deleted stack stay listed for a while, cost
nothing and are left out; a key that is pending deletion counts, for it still lives.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3

Listing = Callable[[boto3.Session], Iterator[str]]

_LIVING_CLUSTERS = ["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING", "TERMINATING"]
_SERVICE_ROLES = "/aws-service-role/"


def inventory(session: boto3.Session | None = None) -> dict[str, set[str]]:
    """Identifiers of everything that exists, by type.

    Args:
        session: whose account and region; the environment's when None.

    Returns:
        A set for every type of `TYPES`, empty where nothing of the type exists. An account's own defaults (the
        default VPC, its roles) are among them: subtract an inventory of before.

    Raises:
        botocore.exceptions.ClientError: a service refuses to list.
    """
    chosen = session or boto3.Session()
    return {kind: set(listing(chosen)) for kind, listing in TYPES.items()}


def left_over(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What is in `after` and was not in `before`, by type; types of which nothing is left are not in it."""
    return {kind: left for kind, found in after.items() if (left := found - before.get(kind, set()))}


def _pages(session: boto3.Session, service: str, operation: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    """The answers of a list operation, page by page."""
    client: Any = session.client(service)  # type: ignore[call-overload]
    if client.can_paginate(operation):
        yield from client.get_paginator(operation).paginate(**parameters)
    else:
        yield getattr(client, operation)(**parameters)


def _items(service: str, operation: str, items: str, identifier: str, **parameters: Any) -> Listing:
    """A type whose list operation answers `items`, each with its `identifier` and perhaps its State."""

    def listing(session: boto3.Session) -> Iterator[str]:
        for page in _pages(session, service, operation, **parameters):
            for item in page.get(items) or []:
                if str(item.get("State")).lower() not in ("deleted", "terminated"):
                    yield str(item[identifier])

    return listing


def _stacks(session: boto3.Session) -> Iterator[str]:
    for page in _pages(session, "cloudformation", "list_stacks"):
        for stack in page["StackSummaries"]:
            if stack["StackStatus"] != "DELETE_COMPLETE":
                yield stack["StackName"]


def _instances(session: boto3.Session) -> Iterator[str]:
    for page in _pages(session, "ec2", "describe_instances"):
        for reservation in page["Reservations"]:
            for instance in reservation["Instances"]:
                if instance["State"]["Name"] != "terminated":
                    yield instance["InstanceId"]


def _of_file_systems(operation: str, items: str, identifier: str) -> Listing:
    """What belongs to file systems, and is listed for each of them."""

    def listing(session: boto3.Session) -> Iterator[str]:
        for file_system in TYPES["efs file system"](session):
            for page in _pages(session, "efs", operation, FileSystemId=file_system):
                yield from (item[identifier] for item in page[items])

    return listing


def _roles(session: boto3.Session) -> Iterator[str]:
    for page in _pages(session, "iam", "list_roles"):
        yield from (role["RoleName"] for role in page["Roles"] if not role["Path"].startswith(_SERVICE_ROLES))


def _keys(session: boto3.Session) -> Iterator[str]:
    """Customers' keys; AWS's own appear when a service first needs them, stay, and cost nothing."""
    kms = session.client("kms")
    for page in _pages(session, "kms", "list_keys"):
        for key in page["Keys"]:
            if kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"].get("KeyManager") == "CUSTOMER":
                yield key["KeyId"]


def _budgets(session: boto3.Session) -> Iterator[str]:
    account = session.client("sts").get_caller_identity()["Account"]
    yield from _items("budgets", "describe_budgets", "Budgets", "BudgetName", AccountId=account)(session)


TYPES: Mapping[str, Listing] = {
    "cloudformation stack": _stacks,
    "s3 bucket": _items("s3", "list_buckets", "Buckets", "Name"),
    "vpc": _items("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    "subnet": _items("ec2", "describe_subnets", "Subnets", "SubnetId"),
    "security group": _items("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
    "route table": _items("ec2", "describe_route_tables", "RouteTables", "RouteTableId"),
    "network acl": _items("ec2", "describe_network_acls", "NetworkAcls", "NetworkAclId"),
    "internet gateway": _items("ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "nat gateway": _items("ec2", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
    "elastic ip": _items("ec2", "describe_addresses", "Addresses", "AllocationId"),
    "vpc endpoint": _items("ec2", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    "flow log": _items("ec2", "describe_flow_logs", "FlowLogs", "FlowLogId"),
    "network interface": _items("ec2", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    "instance": _instances,
    "volume": _items("ec2", "describe_volumes", "Volumes", "VolumeId"),
    "launch template": _items("ec2", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    "placement group": _items("ec2", "describe_placement_groups", "PlacementGroups", "GroupName"),
    "key pair": _items("ec2", "describe_key_pairs", "KeyPairs", "KeyName"),
    "auto scaling group": _items(
        "autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups", "AutoScalingGroupName"
    ),
    "emr cluster": _items("emr", "list_clusters", "Clusters", "Id", ClusterStates=_LIVING_CLUSTERS),
    "emr security configuration": _items("emr", "list_security_configurations", "SecurityConfigurations", "Name"),
    "efs file system": _items("efs", "describe_file_systems", "FileSystems", "FileSystemId"),
    "efs mount target": _of_file_systems("describe_mount_targets", "MountTargets", "MountTargetId"),
    "efs access point": _of_file_systems("describe_access_points", "AccessPoints", "AccessPointId"),
    "iam role": _roles,
    "iam instance profile": _items("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName"),
    "iam policy": _items("iam", "list_policies", "Policies", "Arn", Scope="Local"),
    "kms key": _keys,
    "lambda function": _items("lambda", "list_functions", "Functions", "FunctionName"),
    "lambda layer": _items("lambda", "list_layers", "Layers", "LayerName"),
    "log group": _items("logs", "describe_log_groups", "logGroups", "logGroupName"),
    "cloudwatch alarm": _items("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "cloudwatch dashboard": _items("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    "event rule": _items("events", "list_rules", "Rules", "Name"),
    "schedule": _items("scheduler", "list_schedules", "Schedules", "Name"),
    "schedule group": _items("scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
    "ssm parameter": _items("ssm", "describe_parameters", "Parameters", "Name"),
    "ssm document": _items(
        "ssm", "list_documents", "DocumentIdentifiers", "Name", Filters=[{"Key": "Owner", "Values": ["Self"]}]
    ),
    "sns topic": _items("sns", "list_topics", "Topics", "TopicArn"),
    "sns subscription": _items("sns", "list_subscriptions", "Subscriptions", "SubscriptionArn"),
    "sqs queue": lambda session: (
        queue for page in _pages(session, "sqs", "list_queues") for queue in page.get("QueueUrls", [])
    ),
    "dynamodb table": lambda session: (
        table for page in _pages(session, "dynamodb", "list_tables") for table in page["TableNames"]
    ),
    "secret": _items("secretsmanager", "list_secrets", "SecretList", "Name"),
    "budget": _budgets,
}
