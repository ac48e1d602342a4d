"""Instances, and what starts them.

Groups and clusters come before instances, because they start new ones.
"""

from collections.abc import Iterator, Mapping

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.aws.ownership import fetched_tags, in_stack, listed_tags
from bootstrap.removal import deletion
from bootstrap.removal.deletion import delete_call
from bootstrap.removal.kinds.kind import ResourceKind, always, list_call

_LIVING_CLUSTERS = ["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING", "TERMINATING"]


def _instances(account: Account) -> Iterator[ResourceRecord]:
    for reservation in account.items("ec2", "describe_instances", "Reservations"):
        yield from reservation["Instances"]


MACHINES: Mapping[str, ResourceKind] = {
    "auto scaling group": ResourceKind(
        listing=list_call("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups"),
        identifier="AutoScalingGroupName",
        owned=listed_tags,
        delete=lambda account, name, _: account.client("autoscaling").delete_auto_scaling_group(
            AutoScalingGroupName=name, ForceDelete=True
        ),
        billed=lambda record: bool(record.get("DesiredCapacity") or record.get("Instances")),
        arn=r"autoscaling:autoScalingGroup:[^:]+:autoScalingGroupName/(.+)",
        cloudformation="AWS::AutoScaling::AutoScalingGroup",
    ),
    "emr cluster": ResourceKind(
        listing=list_call("emr", "list_clusters", "Clusters", ClusterStates=_LIVING_CLUSTERS),
        identifier="Id",
        owned=fetched_tags("emr", "describe_cluster", "Cluster.Tags", ClusterId="Id"),
        delete=deletion.cluster,
        billed=always,
        arn="elasticmapreduce:cluster/(.+)",
        cloudformation="AWS::EMR::Cluster",
    ),
    "instance": ResourceKind(
        listing=_instances,
        identifier="InstanceId",
        owned=listed_tags,
        delete=delete_call("ec2", "terminate_instances", InstanceIds="[id]"),
        billed=always,
        arn="ec2:instance/(.+)",
        cloudformation="AWS::EC2::Instance",
    ),
    "volume": ResourceKind(
        listing=list_call("ec2", "describe_volumes", "Volumes"),
        identifier="VolumeId",
        owned=listed_tags,
        delete=delete_call("ec2", "delete_volume", VolumeId="id"),
        billed=always,
        arn="ec2:volume/(.+)",
        cloudformation="AWS::EC2::Volume",
    ),
    "launch template": ResourceKind(
        listing=list_call("ec2", "describe_launch_templates", "LaunchTemplates"),
        identifier="LaunchTemplateId",
        owned=listed_tags,
        delete=delete_call("ec2", "delete_launch_template", LaunchTemplateId="id"),
        arn="ec2:launch-template/(.+)",
        cloudformation="AWS::EC2::LaunchTemplate",
    ),
    "placement group": ResourceKind(
        listing=list_call("ec2", "describe_placement_groups", "PlacementGroups"),
        identifier="GroupName",
        owned=listed_tags,
        delete=delete_call("ec2", "delete_placement_group", GroupName="id"),
        arn="ec2:placement-group/(.+)",
        cloudformation="AWS::EC2::PlacementGroup",
    ),
    "key pair": ResourceKind(
        listing=list_call("ec2", "describe_key_pairs", "KeyPairs"),
        identifier="KeyName",
        owned=listed_tags,
        delete=delete_call("ec2", "delete_key_pair", KeyName="id"),
        arn="ec2:key-pair/(.+)",
        cloudformation="AWS::EC2::KeyPair",
    ),
    "emr security configuration": ResourceKind(
        listing=list_call("emr", "list_security_configurations", "SecurityConfigurations"),
        identifier="Name",
        owned=in_stack("AWS::EMR::SecurityConfiguration", "Name"),
        delete=delete_call("emr", "delete_security_configuration", Name="id"),
        cloudformation="AWS::EMR::SecurityConfiguration",
    ),
}
