"""Owner of resources, and functions that decide by tag, name or VPC whether a resource belongs to an owner.

Split generated CloudFormation names from their end, because a stack's name may contain dashes. Compare the whole name
of the stack, because it may be the prefix of another stack's name. If AWS refuses an answer, ownership is unknown:
raise OwnershipUnknownError, or add the source to `failed_sources`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from shoal_guard.errors import OwnershipUnknownError
from shoal_guard.sweep.account import Account, ResourceRecord, describe_stack, read_tags, reason_of

Kind = Any
"""Alias for `ResourceKind` of `kinds.py`. Do not import `kinds.py` here, because it imports this module."""
_AT_ONCE = 8
_ABSENT = ("NoSuch", "NotFound", "DoesNotExist", "NonExistent")
"""Parts of error codes that mean that a resource has no tags or no longer exists."""
_KEEP = "shoal:keep"
"""Tag of a bucket that must outlive its stack. With `true` the bucket is always kept. With `unfetched` it is kept while
it contains runs that were not fetched.
"""
_Answer = TypeVar("_Answer")

Owned = Callable[["Owner", ResourceRecord], bool]
"""Function that returns whether a resource, given its record, belongs to an owner. It raises OwnershipUnknownError if
ownership is unknown."""


class Owner(ABC):
    """An owner of resources in an account, with a stack and a tag. A subclass defines the names of its resources."""

    def __init__(self, account: Account, *, stack: str, tag: str, value: str) -> None:
        self.account, self.stack, self._tag, self._value = account, stack, tag, value
        self.failed_sources: dict[str, str] = {}
        """Sources that did not answer, with the reason for each."""

    def of(self, tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> bool:
        """Return whether these tags, in any of AWS's formats, belong to the owner."""
        return read_tags(tags).get(self._tag) == self._value

    @abstractmethod
    def may_own(self, record: ResourceRecord) -> bool:
        """Return whether the resource of this record may belong to the owner, so that its tags should be fetched."""

    @abstractmethod
    def has_name(self, cloudformation: str, name: str) -> bool:
        """Return whether the name alone proves that a resource of this CloudFormation type belongs to the owner."""

    @abstractmethod
    def why_kept(self, bucket: str) -> tuple[str, Sequence[str]]:
        """Return the reason why a bucket of the owner must be kept, and the runs that were not fetched.

        The reason is empty if the bucket may be deleted. Raises OwnershipUnknownError if the bucket's tags or data are
        unreadable.
        """

    @abstractmethod
    def may_empty(self, bucket: str) -> bool:
        """Return whether a bucket may be emptied before its deletion. Otherwise it is deleted only if it is empty."""

    @cached_property
    def networks(self) -> set[str]:
        """Ids of the owner's VPCs. All resources in them belong to the owner."""

        def listed() -> set[str]:
            vpcs = self.account.items("ec2", "describe_vpcs", "Vpcs")
            return {vpc["VpcId"] for vpc in vpcs if self.of(vpc.get("Tags"))}

        return self.try_source("the VPCs", listed, set())

    @cached_property
    def arns(self) -> list[str]:
        """ARNs of the owner's resources that AWS's tagging service lists. The service omits some types, and lists some
        deleted resources."""

        def listed() -> list[str]:
            filters = [{"Key": self._tag, "Values": [self._value]}]
            mappings = self.account.items(
                "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters
            )
            return [each["ResourceARN"] for each in mappings]

        return self.try_source("the tagging service", listed, [])

    @cached_property
    def stack_resources(self) -> set[tuple[str, str]]:
        """Types and identifiers of the resources of the owner's stacks, including stacks deleted within 90 days."""

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
        """Return whether a global resource with the owner's name or tag belongs to the stack in this region.

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
            self.account, lambda cloudformation: describe_stack(cloudformation, self.stack) is not None
        )
        return next((region for region, exists in there.items() if exists), None), unchecked

    def try_source(self, source: str, call: Callable[[], _Answer], default: _Answer) -> _Answer:
        """Return the result of `call()`. If it fails, record `source` in `failed_sources` and return `default`."""
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            self.failed_sources[source] = reason_of(error)
            return default


def keep_tag(account: Account, bucket: str) -> str | None:
    """Return the value of a bucket's tag `shoal:keep`, or None without the tag. Raises AWS's error if the tags are
    unreadable."""
    try:
        tags = read_tags(account.client("s3").get_bucket_tagging(Bucket=bucket)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchTagSet", "NoSuchBucket"):
            return None
        raise
    return tags.get(_KEEP)


def keep_unknown(error: BotoCoreError | ClientError) -> OwnershipUnknownError:
    """Return the exception for a bucket that must be kept, because reading its tags or data failed with `error`."""
    return OwnershipUnknownError(f"it is unknown whether to keep its data ({reason_of(error)})")


def ask_other_regions(account: Account, ask: Callable[[Any], _Answer]) -> tuple[dict[str, _Answer], str]:
    """Call `ask` with a CloudFormation client for each other region of the account. Return the answers by region.

    Also return, as text, the regions that did not answer, with the first reason; empty if all regions answered.
    """
    try:
        found = account.client("ec2").describe_regions()["Regions"]
    except (BotoCoreError, ClientError) as error:
        return {}, f"all other regions ({reason_of(error)})"
    regions = sorted({str(each["RegionName"]) for each in found} - {account.region})
    clients = [account.client("cloudformation", region) for region in regions]

    def answer(client: Any) -> _Answer | BotoCoreError | ClientError:
        try:
            return ask(client)
        except (BotoCoreError, ClientError) as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(regions, pool.map(answer, clients), strict=True))
    failed = {region: each for region, each in answers.items() if isinstance(each, BotoCoreError | ClientError)}
    unchecked = f"{', '.join(failed)} ({reason_of(next(iter(failed.values())))})" if failed else ""
    return {
        region: each for region, each in answers.items() if not isinstance(each, BotoCoreError | ClientError)
    }, unchecked


def generated_by(stack: str, name: str) -> bool:
    """Return whether CloudFormation generated this name, STACK-LOGICALID-LETTERS, for exactly this stack."""
    return name.rsplit("-", 2)[0] == stack


def listed_tags(owner: Owner, record: ResourceRecord) -> bool:
    """Return whether the tags in a resource's record belong to the owner."""
    return owner.of(next((record[key] for key in ("Tags", "TagSet", "TagList") if record.get(key)), None))


def fetched_tags(service: str, operation: str, answer: str, **parameters: str) -> Owned:
    """Return a function that decides ownership by tags that must be fetched with a call for each resource.

    The function calls the operation only if `may_own` is true for the record. Each value in `parameters` is a key of
    the record or a literal value. `answer` is the path to the tags in the response, with dots.
    """

    def owned(owner: Owner, record: ResourceRecord) -> bool:
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
    """Return `owned`, extended to all resources in the owner's VPCs, because they would block the VPCs' deletion."""
    return lambda owner, record: owned(owner, record) or record.get("VpcId") in owner.networks


def in_stack(cloudformation: str, name: str) -> Owned:
    """Return a function that decides the ownership of resources without tags.

    The function uses CloudFormation's list of the stack's resources, and the names that CloudFormation generates.
    """

    def owned(owner: Owner, record: ResourceRecord) -> bool:
        return generated_by(owner.stack, record[name]) or (cloudformation, record[name]) in owner.stack_resources

    return owned


def never_owned(_owner: Owner, _record: ResourceRecord) -> bool:
    """Return False. Only the tagging service finds resources of this kind."""
    return False
