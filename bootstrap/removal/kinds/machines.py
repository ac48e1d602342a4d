"""Instances, and what starts them.

Groups and clusters come before instances, because they start new ones.
"""

from collections.abc import Iterator, Mapping

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.aws.ownership import fetched_tags, in_stack, listed_tags
from bootstrap.removal import deletion
from bootstrap.removal.deletion import delete_call
from bootstrap.removal.kinds.kind import ResourceKind, always, ec2_kind, list_call

_LIVING_CLUSTERS = ["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING", "TERMINATING"]


def _instances(account: Account) -> Iterator[ResourceRecord]:
    for reservation in account.items("ec2", "describe_instances", "Reservations"):
        yield from reservation["Instances"]


def _training_jobs(account: Account) -> Iterator[ResourceRecord]:
    """Those that have not ended: others cost nothing, and SageMaker keeps them for ever."""
    for status, state in (("InProgress", "running"), ("Stopping", "terminating")):
        for job in account.items("sagemaker", "list_training_jobs", "TrainingJobSummaries", StatusEquals=status):
            yield {**job, "State": state}


MACHINES: Mapping[str, ResourceKind] = {
    "auto scaling group": ResourceKind(
        listing=list_call("autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups"),
        identifier="AutoScalingGroupName",
        owned=listed_tags,
        delete=delete_call("autoscaling", "delete_auto_scaling_group", AutoScalingGroupName="id", ForceDelete=True),
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
    "training job": ResourceKind(
        listing=_training_jobs,
        identifier="TrainingJobName",
        owned=fetched_tags("sagemaker", "list_tags", "Tags", ResourceArn="TrainingJobArn"),
        delete=delete_call("sagemaker", "stop_training_job", TrainingJobName="id"),
        billed=always,
        arn="sagemaker:training-job/(.+)",
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
    "volume": ec2_kind("Volumes", "VolumeId", "Volume", "volume", billed=always),
    "launch template": ec2_kind("LaunchTemplates", "LaunchTemplateId", "LaunchTemplate", "launch-template"),
    "placement group": ec2_kind("PlacementGroups", "GroupName", "PlacementGroup", "placement-group"),
    "key pair": ec2_kind("KeyPairs", "KeyName", "KeyPair", "key-pair"),
    "emr security configuration": ResourceKind(
        listing=list_call("emr", "list_security_configurations", "SecurityConfigurations"),
        identifier="Name",
        owned=in_stack("AWS::EMR::SecurityConfiguration", "Name"),
        delete=delete_call("emr", "delete_security_configuration", Name="id"),
        cloudformation="AWS::EMR::SecurityConfiguration",
    ),
}
