"""Functions for `kinds.yaml` that list resources or decide their ownership where a single call is not enough.

For a while, AWS still lists terminated instances and clusters, deleted NAT gateways and deleted stacks.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError

from shoal.aws.account import Account, ResourceRecord
from shoal.deployments.removal.ownership import Ownership, fetched_tags, generated_by, in_stack, in_vpc, listed_tags

_SERVICE_ROLES = "/aws-service-role/"
_ROLE_TAGS = fetched_tags("iam", "list_role_tags", "Tags", RoleName="RoleName")
_LOG_TAGS = fetched_tags("logs", "list_tags_for_resource", "tags", resourceArn="arn")
_TOPIC_TAGS = fetched_tags("sns", "list_tags_for_resource", "Tags", ResourceArn="TopicArn")
_PARAMETER_TAGS = fetched_tags("ssm", "list_tags_for_resource", "TagList", ResourceType="Parameter", ResourceId="Name")


def instances(account: Account) -> Iterator[ResourceRecord]:
    for reservation in account.items("ec2", "describe_instances", "Reservations"):
        yield from reservation["Instances"]


def training_jobs(account: Account) -> Iterator[ResourceRecord]:
    """Yield the training jobs that have not ended. Ended jobs cost nothing, and SageMaker lists them forever."""
    for status, state in (("InProgress", "running"), ("Stopping", "terminating")):
        for job in account.items("sagemaker", "list_training_jobs", "TrainingJobSummaries", StatusEquals=status):
            yield {**job, "State": state}


def mount_targets(account: Account) -> Iterator[ResourceRecord]:
    """Yield the mount targets of all EFS file systems, each with the tags of its file system."""
    for system in account.items("efs", "describe_file_systems", "FileSystems"):
        with suppress_error("FileSystemNotFound"):
            for record in account.items(
                "efs", "describe_mount_targets", "MountTargets", FileSystemId=system["FileSystemId"]
            ):
                yield {**record, "Tags": system.get("Tags")}


def buckets(account: Account) -> Iterator[ResourceRecord]:
    """Yield the buckets of this region. The request filters by region, because otherwise S3 lists the buckets of all
    regions and does not say in which region a bucket is."""
    return account.items("s3", "list_buckets", "Buckets", BucketRegion=account.region)


def roles(account: Account) -> Iterator[ResourceRecord]:
    """Return the account's roles without AWS's service-linked roles."""
    roles = account.items("iam", "list_roles", "Roles")
    return (role for role in roles if not role["Path"].startswith(_SERVICE_ROLES))


def owns_security_group(owner: Ownership, record: ResourceRecord) -> bool:
    """Return whether a security group belongs to the deployment. AWS deletes a default group with its VPC."""
    return record["GroupName"] != "default" and in_vpc(listed_tags)(owner, record)


def owns_unused_interface(owner: Ownership, record: ResourceRecord) -> bool:
    """Return whether an unused network interface belongs to the deployment. AWS deletes an interface in use with the
    resource that uses it."""
    return record.get("Status") == "available" and in_vpc(listed_tags)(owner, record)


def owns_log_group(owner: Ownership, record: ResourceRecord) -> bool:
    """Return whether a log group belongs to the deployment, by its tags or by the name of its Lambda function.

    A log group that Lambda created has no tags, and its name contains the name of the function.
    """
    lambdas, _, name = record["logGroupName"].rpartition("/")
    of_function = lambdas == "/aws/lambda" and generated_by(owner.stack, name)
    return of_function or _LOG_TAGS(owner, {**record, "arn": record["arn"].removesuffix(":*")})


def owns_parameter(owner: Ownership, record: ResourceRecord) -> bool:
    """Return whether a parameter belongs to the deployment, by its path or by its tags."""
    return record["Name"].startswith(f"/shoal/{owner.deployment}/") or _PARAMETER_TAGS(owner, record)


def owns_subscription(owner: Ownership, record: ResourceRecord) -> bool:
    """Return whether the tags of a subscription's topic belong to the deployment. The tags of a topic in a different
    account are unreadable."""
    topic, subscriber = record["TopicArn"].split(":")[4], record["Owner"]
    return bool(topic == subscriber) and _TOPIC_TAGS(owner, record)


def owns_instance_profile(owner: Ownership, record: ResourceRecord) -> bool:
    """Return whether an instance profile belongs to the deployment, by CloudFormation's list or by its roles' tags.

    CloudFormation does not tag instance profiles.
    """
    of_the_stack = in_stack("AWS::IAM::InstanceProfile", "InstanceProfileName")
    return of_the_stack(owner, record) or any(_ROLE_TAGS(owner, role) for role in record["Roles"])


@contextmanager
def suppress_error(code: str) -> Iterator[None]:
    """Suppress a ClientError with this code, by which a service reports that a listed resource no longer exists."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] != code:
            raise
