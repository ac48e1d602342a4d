"""Lists, and finds the owners of, the kinds of resources for which one call does not do: functions of `kinds.yaml`.

Terminated instances and clusters, deleted NAT gateways and deleted stacks stay listed for a while.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError

from shoal_guard.errors import OwnershipUnknownError
from shoal_guard.sweep.account import Account, ResourceRecord, reason_of
from shoal_guard.sweep.owner import Owner, fetched_tags, generated_by, in_stack, in_vpc, listed_tags

_SERVICE_ROLES = "/aws-service-role/"
_ROLE_TAGS = fetched_tags("iam", "list_role_tags", "Tags", RoleName="RoleName")
_LOG_TAGS = fetched_tags("logs", "list_tags_for_resource", "tags", resourceArn="arn")
_TOPIC_TAGS = fetched_tags("sns", "list_tags_for_resource", "Tags", ResourceArn="TopicArn")
_PARAMETER_TAGS = fetched_tags("ssm", "list_tags_for_resource", "TagList", ResourceType="Parameter", ResourceId="Name")


def instances(account: Account) -> Iterator[ResourceRecord]:
    for reservation in account.items("ec2", "describe_instances", "Reservations"):
        yield from reservation["Instances"]


def training_jobs(account: Account) -> Iterator[ResourceRecord]:
    """Those that have not ended: others cost nothing, and SageMaker keeps them for ever."""
    for status, state in (("InProgress", "running"), ("Stopping", "terminating")):
        for job in account.items("sagemaker", "list_training_jobs", "TrainingJobSummaries", StatusEquals=status):
            yield {**job, "State": state}


def mount_targets(account: Account) -> Iterator[ResourceRecord]:
    return _of_file_systems(account, "describe_mount_targets", "MountTargets")


def access_points(account: Account) -> Iterator[ResourceRecord]:
    return _of_file_systems(account, "describe_access_points", "AccessPoints")


def buckets(account: Account) -> Iterator[ResourceRecord]:
    """Those of this region: without the filter S3 lists all regions' buckets, without their regions."""
    return account.items("s3", "list_buckets", "Buckets", BucketRegion=account.region)


def queues(account: Account) -> Iterator[ResourceRecord]:
    urls = account.items("sqs", "list_queues", "QueueUrls")
    return ({"Name": url.rpartition("/")[2], "Url": url} for url in urls)


def budgets(account: Account) -> Iterator[ResourceRecord]:
    return account.items("budgets", "describe_budgets", "Budgets", AccountId=account.number())


def roles(account: Account) -> Iterator[ResourceRecord]:
    """Those that the account has made; AWS's services have roles of their own."""
    roles = account.items("iam", "list_roles", "Roles")
    return (role for role in roles if not role["Path"].startswith(_SERVICE_ROLES))


def customer_keys(account: Account) -> Iterator[ResourceRecord]:
    """Customer managed keys. AWS managed keys are left out: AWS creates them, they stay, and they cost nothing.

    A key's policy can forbid reading its state; such a key exists, and nothing else is known of it. A key that is
    pending deletion still exists and counts.
    """
    for key in account.items("kms", "list_keys", "Keys"):
        with suppress_error("NotFoundException"):
            try:
                found = account.client("kms").describe_key(KeyId=key["KeyId"])["KeyMetadata"]
            except ClientError as error:
                if error.response["Error"]["Code"] != "AccessDeniedException":
                    raise
                found = {"KeyManager": "CUSTOMER"}
            if found["KeyManager"] == "CUSTOMER":
                yield {"KeyId": key["KeyId"], "State": found.get("KeyState", "")}


def _of_file_systems(account: Account, operation: str, key: str) -> Iterator[ResourceRecord]:
    """Parts of file systems, listed for each file system, with its tags."""
    for system in account.items("efs", "describe_file_systems", "FileSystems"):
        with suppress_error("FileSystemNotFound"):
            for record in account.items("efs", operation, key, FileSystemId=system["FileSystemId"]):
                yield {**record, "Tags": system.get("Tags")}


def owns_load_balancer(owner: Owner, record: ResourceRecord) -> bool:
    """By its tags, which no list of load balancers has."""
    try:
        found = owner.account.client("elbv2").describe_tags(ResourceArns=[record["LoadBalancerArn"]])
    except (BotoCoreError, ClientError) as error:
        raise OwnershipUnknownError(f"its tags cannot be read ({reason_of(error)})") from None
    return any(owner.of(each["Tags"]) for each in found["TagDescriptions"])


def owns_security_group(owner: Owner, record: ResourceRecord) -> bool:
    """The group named default is deleted with its VPC, and never before."""
    return record["GroupName"] != "default" and in_vpc(listed_tags)(owner, record)


def owns_unused_interface(owner: Owner, record: ResourceRecord) -> bool:
    """An interface in use is deleted with what uses it."""
    return record.get("Status") == "available" and in_vpc(listed_tags)(owner, record)


def owns_log_group(owner: Owner, record: ResourceRecord) -> bool:
    """Log groups that Lambda creates are named after functions and have no tags."""
    lambdas, _, name = record["logGroupName"].rpartition("/")
    of_function = lambdas == "/aws/lambda" and generated_by(owner.stack, name)
    return of_function or _LOG_TAGS(owner, {**record, "arn": record["arn"].removesuffix(":*")})


def owns_parameter(owner: Owner, record: ResourceRecord) -> bool:
    return owner.has_name("AWS::SSM::Parameter", record["Name"]) or _PARAMETER_TAGS(owner, record)


def owns_budget(owner: Owner, record: ResourceRecord) -> bool:
    """Budgets have no tags, and one of the user can filter by the owner's tag, too."""
    return owner.has_name("AWS::Budgets::Budget", record["BudgetName"])


def owns_subscription(owner: Owner, record: ResourceRecord) -> bool:
    """By the tags of its topic, unless that is another account's, whose tags cannot be read."""
    topic, subscriber = record["TopicArn"].split(":")[4], record["Owner"]
    return bool(topic == subscriber) and _TOPIC_TAGS(owner, record)


def owns_instance_profile(owner: Owner, record: ResourceRecord) -> bool:
    """CloudFormation does not tag profiles, but it tags their roles."""
    of_the_stack = in_stack("AWS::IAM::InstanceProfile", "InstanceProfileName")
    return of_the_stack(owner, record) or any(_ROLE_TAGS(owner, role) for role in record["Roles"])


@contextmanager
def suppress_error(code: str) -> Iterator[None]:
    """Ignore this error code, by which a service reports that a listed resource is gone by now."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] != code:
            raise
