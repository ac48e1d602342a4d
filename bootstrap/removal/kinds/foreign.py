"""What no deployment of Shoal creates, but other stacks leave: databases, load balancers, images, and snapshots.

Instances come before their snapshots, and images before the snapshots that they are made of.
"""

from collections.abc import Mapping

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws.account import ResourceRecord
from bootstrap.aws.ownership import Ownership, OwnershipUnknownError, fetched_tags, listed_tags, reason_of
from bootstrap.removal.deletion import Delete, delete_call
from bootstrap.removal.kinds.kind import ListCall, ResourceKind, always, ec2_kind, list_call


def _load_balancer_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """By its tags, which no list of load balancers has."""
    try:
        found = ownership.account.client("elbv2").describe_tags(ResourceArns=[record["LoadBalancerArn"]])
    except (BotoCoreError, ClientError) as error:
        raise OwnershipUnknownError(f"its tags cannot be read ({reason_of(error)})") from None
    return any(ownership.of(each["Tags"]) for each in found["TagDescriptions"])


def _rds_kind(listing: ListCall, identifier: str, delete: Delete, arn: str, cloudformation: str) -> ResourceKind:
    return ResourceKind(
        listing=listing,
        identifier=identifier,
        owned=listed_tags,
        delete=delete,
        billed=always,
        arn=f"rds:{arn}",
        cloudformation=f"AWS::RDS::{cloudformation}",
    )


FOREIGN: Mapping[str, ResourceKind] = {
    "load balancer": ResourceKind(
        listing=list_call("elbv2", "describe_load_balancers", "LoadBalancers"),
        identifier="LoadBalancerArn",
        owned=_load_balancer_is_owned,
        delete=delete_call("elbv2", "delete_load_balancer", LoadBalancerArn="id"),
        billed=always,
        arn="elasticloadbalancing:loadbalancer/(?:app|net|gwy)/.+",
        cloudformation="AWS::ElasticLoadBalancingV2::LoadBalancer",
    ),
    "rds instance": _rds_kind(
        list_call("rds", "describe_db_instances", "DBInstances"),
        "DBInstanceIdentifier",
        delete_call("rds", "delete_db_instance", DBInstanceIdentifier="id", SkipFinalSnapshot=True),
        "db:(.+)",
        "DBInstance",
    ),
    "rds cluster": _rds_kind(
        list_call("rds", "describe_db_clusters", "DBClusters"),
        "DBClusterIdentifier",
        delete_call("rds", "delete_db_cluster", DBClusterIdentifier="id", SkipFinalSnapshot=True),
        "cluster:(.+)",
        "DBCluster",
    ),
    "rds snapshot": _rds_kind(  # automatic ones go with their instance
        list_call("rds", "describe_db_snapshots", "DBSnapshots", SnapshotType="manual"),
        "DBSnapshotIdentifier",
        delete_call("rds", "delete_db_snapshot", DBSnapshotIdentifier="id"),
        "snapshot:(?!rds:|awsbackup:)(.+)",
        "DBSnapshot",
    ),
    "rds cluster snapshot": _rds_kind(
        list_call("rds", "describe_db_cluster_snapshots", "DBClusterSnapshots", SnapshotType="manual"),
        "DBClusterSnapshotIdentifier",
        delete_call("rds", "delete_db_cluster_snapshot", DBClusterSnapshotIdentifier="id"),
        "cluster-snapshot:(?!rds:|awsbackup:)(.+)",
        "DBClusterSnapshot",
    ),
    "ecr repository": ResourceKind(
        listing=list_call("ecr", "describe_repositories", "repositories"),
        identifier="repositoryName",
        owned=fetched_tags("ecr", "list_tags_for_resource", "tags", resourceArn="repositoryArn"),
        delete=delete_call("ecr", "delete_repository", repositoryName="id", force=True),
        billed=always,
        arn="ecr:repository/(.+)",
        cloudformation="AWS::ECR::Repository",
    ),
    "image": ec2_kind(
        "Images",
        "ImageId",
        "Image",
        "image",
        listing=list_call("ec2", "describe_images", "Images", Owners=["self"]),
        delete=delete_call("ec2", "deregister_image", ImageId="id"),
    ),
    "snapshot": ec2_kind(
        "Snapshots",
        "SnapshotId",
        "Snapshot",
        "snapshot",
        listing=list_call("ec2", "describe_snapshots", "Snapshots", OwnerIds=["self"]),
        delete=delete_call("ec2", "delete_snapshot", SnapshotId="id"),
        billed=always,
    ),
}
