"""Ownership of resources: whether a resource belongs to a deployment, by tag, name or VPC, and whether a bucket must
outlive its deployment.

Split generated CloudFormation names from their end, because a deployment's name may contain dashes. Do not recognize
names by a prefix, because `Shoal-a-` is also a prefix of the names of the deployment `a-b`. If AWS refuses an answer,
ownership is unknown: raise OwnershipUnknownError, or add the source to `failed_sources`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from common import names
from common.errors import ShoalError
from infra import policies, topology
from shoal.aws import fetched, stacks
from shoal.aws.account import Account, ResourceRecord, ask_other_regions, read_tags, reason_of

Kind = Any
"""Alias for `ResourceKind` of `kinds.py`. Do not import `kinds.py` here, because it imports this module."""
_ABSENT = ("NoSuch", "NotFound", "DoesNotExist", "NonExistent")
"""Parts of error codes that mean that a resource has no tags or no longer exists."""
_TOOLKIT_PREFIX = f"cdk-{policies.QUALIFIER}-"
_Answer = TypeVar("_Answer")

Owned = Callable[["Ownership", ResourceRecord], bool]
"""Function that returns whether a resource, given its record, belongs to a deployment. It raises OwnershipUnknownError
if ownership is unknown."""


class OwnershipUnknownError(ShoalError):
    """The owner of a resource is unknown. The message is the reason."""


class Ownership:
    """Decides for resources of an account whether they belong to one deployment."""

    def __init__(self, account: Account, deployment: str) -> None:
        self.account, self.deployment, self.stack = account, deployment, topology.stack_name(deployment)
        self.failed_sources: dict[str, str] = {}
        """Sources that did not answer, with the reason for each."""

    def of(self, tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> bool:
        """Return whether these tags, in any of AWS's formats, belong to the deployment."""
        return read_tags(tags).get(names.TAG_DEPLOYMENT) == self.deployment

    def may_own(self, record: ResourceRecord) -> bool:
        """Return whether a record might belong to the deployment, so that a call to read its tags is worthwhile.

        All names that CloudFormation generates contain `shoal`; the tagging service finds the other resources. Names of
        the CDK toolkit also contain `shoal`. They are excluded, because the caller might not be allowed to read the
        toolkit's tags.
        """
        texts = (value.lower() for value in record.values() if isinstance(value, str))
        return any("shoal" in text.replace(_TOOLKIT_PREFIX, "") for text in texts)

    @cached_property
    def networks(self) -> set[str]:
        """Ids of the deployment's VPCs. All resources in them belong to the deployment."""

        def listed() -> set[str]:
            vpcs = self.account.items("ec2", "describe_vpcs", "Vpcs")
            return {vpc["VpcId"] for vpc in vpcs if self.of(vpc.get("Tags"))}

        return self.try_source("the VPCs", listed, set())

    @cached_property
    def arns(self) -> list[str]:
        """ARNs of the deployment's resources that AWS's tagging service lists. The service omits some types, and lists
        some deleted resources."""

        def listed() -> list[str]:
            filters = [{"Key": names.TAG_DEPLOYMENT, "Values": [self.deployment]}]
            mappings = self.account.items(
                "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters
            )
            return [each["ResourceARN"] for each in mappings]

        return self.try_source("the tagging service", listed, [])

    @cached_property
    def stack_resources(self) -> set[tuple[str, str]]:
        """Types and identifiers of the resources of the deployment's stacks, also of stacks deleted within 90 days."""

        def listed() -> set[tuple[str, str]]:
            return {
                (resource["ResourceType"], resource.get("PhysicalResourceId", ""))
                for stack in self.account.items("cloudformation", "list_stacks", "StackSummaries")
                if stack["StackName"] == self.stack
                for resource in self.account.items(
                    "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack["StackId"]
                )
            }

        return self.try_source("CloudFormation's record", listed, set())

    def is_of_this_region(self, kind: Kind, identifier: str) -> bool:
        """Return whether a global resource with the deployment's name or tag belongs to the stack in this region.

        Raises OwnershipUnknownError if other regions do not answer.
        """
        if (kind.cloudformation, identifier) in self.stack_resources:
            return True
        if self.unchecked and not self.elsewhere:
            raise OwnershipUnknownError(
                f"another region may have a deployment of this name, but these regions did not answer: {self.unchecked}"
            )
        return not self.elsewhere

    @property
    def elsewhere(self) -> str | None:
        """Name of another region that has a stack of this name, or None. That stack may own global resources."""
        return self._regions[0]

    @property
    def unchecked(self) -> str:
        """Regions that did not answer whether they have a stack of this name, with the first reason; empty if all
        regions answered."""
        return self._regions[1]

    @cached_property
    def _regions(self) -> tuple[str | None, str]:
        there, unchecked = ask_other_regions(
            self.account, lambda cloudformation: stacks.describe(cloudformation, self.stack) is not None
        )
        return next((region for region, exists in there.items() if exists), None), unchecked

    def try_source(self, source: str, call: Callable[[], _Answer], default: _Answer) -> _Answer:
        """Return the result of `call()`. If it fails, record `source` in `failed_sources` and return `default`."""
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            self.failed_sources[source] = reason_of(error)
            return default


def why_kept(account: Account, bucket: str) -> tuple[str, list[str]]:
    """Return the reason why a bucket must outlive the stack, and the runs for which it is kept. Both are empty if it is
    not kept.

    Raises OwnershipUnknownError if the bucket's tag or its runs are unreadable, because such a bucket must not be
    emptied.
    """
    try:
        keep = keep_tag(account, bucket)
        if keep == "true" and not is_empty(account, bucket):
            return f"its topology keeps it; to delete it: aws s3 rb --force s3://{bucket}", []
        runs = fetched.unfetched(account.client("s3"), bucket) if keep == names.KEEP_UNFETCHED else []
    except (BotoCoreError, ClientError) as error:
        raise OwnershipUnknownError(f"it is unknown whether to keep its data ({reason_of(error)})") from None
    if not runs:
        return "", []
    named = f"these runs were not fetched completely: {', '.join(runs)}"
    return f"{named}; `shoal fetch` copies them, and `shoal destroy --delete-runs` deletes them", runs


def keep_tag(account: Account, bucket: str) -> str | None:
    """Return the value of a bucket's tag `shoal:keep`, or None without the tag. Raises AWS's error if the tags are
    unreadable."""
    try:
        tags = read_tags(account.client("s3").get_bucket_tagging(Bucket=bucket)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchTagSet", "NoSuchBucket"):
            return None
        raise
    return tags.get(names.TAG_KEEP)


def is_empty(account: Account, bucket: str) -> bool:
    """Return whether a bucket contains neither objects nor older versions of objects."""
    page = account.client("s3").list_object_versions(Bucket=bucket, MaxKeys=1)
    return not page.get("Versions") and not page.get("DeleteMarkers")


def generated_by(stack: str, name: str) -> bool:
    """Return whether CloudFormation generated this name, STACK-LOGICALID-LETTERS, for exactly this stack."""
    return name.rsplit("-", 2)[0] == stack


def listed_tags(owner: Ownership, record: ResourceRecord) -> bool:
    """Return whether the tags in a resource's record belong to the deployment."""
    return owner.of(next((record[key] for key in ("Tags", "TagSet", "TagList") if record.get(key)), None))


def fetched_tags(service: str, operation: str, answer: str, **parameters: str) -> Owned:
    """Return a function that decides ownership by tags that must be fetched with a call for each resource.

    The function calls the operation only if `may_own` is true for the record. Each value in `parameters` is a key of
    the record or a literal value. `answer` is the path to the tags in the response, with dots.
    """

    def owned(owner: Ownership, record: ResourceRecord) -> bool:
        if not owner.may_own(record):
            return False
        values = {name: record.get(value, value) for name, value in parameters.items()}
        try:
            found = getattr(owner.account.client(service), operation)(**values)
        except (BotoCoreError, ClientError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            if any(word in code for word in _ABSENT):
                return False
            raise OwnershipUnknownError(f"its tags are unreadable ({reason_of(error)})") from None
        for key in answer.split("."):
            found = found.get(key) or {}
        return owner.of(found)

    return owned


def in_vpc(owned: Owned) -> Owned:
    """Return `owned`, extended to resources in the deployment's VPCs, because they would block the VPCs' deletion."""
    return lambda owner, record: owned(owner, record) or record.get("VpcId") in owner.networks


def in_stack(cloudformation: str, name: str) -> Owned:
    """Return a function that decides the ownership of resources without tags.

    The function uses CloudFormation's list of the stack's resources, and the names that CloudFormation generates.
    """

    def owned(owner: Ownership, record: ResourceRecord) -> bool:
        return generated_by(owner.stack, record[name]) or (cloudformation, record[name]) in owner.stack_resources

    return owned


def never_owned(_owner: Ownership, _record: ResourceRecord) -> bool:
    """Return False. Only the tagging service finds resources of this kind."""
    return False
