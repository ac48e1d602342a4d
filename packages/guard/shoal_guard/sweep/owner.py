"""Whose things are looked for in an account, and how it is found out whether a resource belongs to them: by tag, by
name, or by the VPC that it is in.

Names that CloudFormation made are split from their end, where neither its random letters nor a logical id has a dash,
and compared whole: a stack's name may begin another one's. Do not treat a refusal as a no: raise OwnershipUnknownError,
or add the source to `failed_sources`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from shoal_guard.errors import OwnershipUnknownError
from shoal_guard.sweep.account import Account, ResourceRecord, describe_stack, read_tags, reason_of

Kind = Any
"""A `ResourceKind` of `kinds.py`, which imports this module."""
_AT_ONCE = 8
_ABSENT = ("NoSuch", "NotFound", "DoesNotExist", "NonExistent")
"""Parts of the codes of errors that mean that there are no tags, or that the resource is gone."""
_KEEP, _KEPT = "shoal:keep", ("true", "unfetched")
"""The tag of a bucket that must outlive its stack, and its values: always, and as long as it holds runs that were not
fetched."""
_Answer = TypeVar("_Answer")

Owned = Callable[["Owner", ResourceRecord], bool]
"""Whether a record belongs to an owner. Raises OwnershipUnknownError where that is unknown."""


class Owner:
    """An owner of resources: what an account reports of it. A subclass says by which tags and names it is known."""

    stack = ""
    """The stack to which names belong that CloudFormation made; empty: such a name alone proves nothing."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.failed_sources: dict[str, str] = {}
        """The sources that did not answer, each with the reason."""

    def of(self, tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> bool:
        """Whether these tags, in any of AWS's forms, are the owner's."""
        raise NotImplementedError

    def may_own(self, _record: ResourceRecord) -> bool:
        """Whether a record's tags are worth a call."""
        return True

    def has_name(self, _cloudformation: str, _name: str) -> bool:
        """Whether a resource of this type of CloudFormation is the owner's by its name alone."""
        return False

    def owns_by_name(self, _kind: Kind, _identifier: str, _record: ResourceRecord) -> bool:
        """Whether a resource belongs to it by what is recorded of its name, whatever its kind."""
        return False

    def stack_of(self, _kind: Kind, _identifier: str, _record: ResourceRecord) -> tuple[str, bool]:
        """The stack that a resource is of, and whether that is a living one of somebody else."""
        return "", False

    def why_kept(self, bucket: str) -> tuple[str, Sequence[str]]:
        """Why a bucket of the owner must stay, and what in it is the reason; empty where it may be deleted.

        Raises OwnershipUnknownError when that cannot be read.
        """
        try:
            keep = keep_tag(self.account, bucket)
        except (BotoCoreError, ClientError) as error:
            raise keep_unknown(error) from None
        if keep not in _KEPT:
            return "", ()
        return f"its tag {_KEEP}={keep} keeps it; remove the tag to have it deleted", ()

    def may_empty(self, _bucket: str) -> bool:
        """Whether a bucket that may be deleted may be emptied for it; else it is deleted only if it is empty."""
        return True

    @property
    def networks(self) -> set[str]:
        """The ids of VPCs in which everything is the owner's."""
        return set()

    @property
    def arns(self) -> Sequence[str]:
        """The ARNs of the owner's resources, by AWS's tagging service: not all types, and some that are deleted."""
        return ()

    @property
    def stack_resources(self) -> set[tuple[str, str]]:
        """Types and identifiers in the owner's stacks, also in stacks deleted within 90 days."""
        return set()

    def is_of_this_region(self, kind: Kind, identifier: str) -> bool:
        """Whether something without a region, which is the owner's by name or tag, is that of the owner in this one.

        Raises OwnershipUnknownError where other regions do not tell.
        """
        if (kind.cloudformation, identifier) in self.stack_resources:
            return True
        if self.unchecked and not self.elsewhere:
            raise OwnershipUnknownError(
                f"another region may have a deployment of this name, and these cannot be checked: {self.unchecked}"
            )
        return not self.elsewhere

    @property
    def elsewhere(self) -> str | None:
        """Another region with a deployment of this name, which can own resources without a region; or None."""
        return self._regions[0]

    @property
    def unchecked(self) -> str:
        """The regions that could not be checked for such a deployment, with the reason for one; empty without any."""
        return self._regions[1]

    @cached_property
    def _regions(self) -> tuple[str | None, str]:
        there, unchecked = ask_other_regions(self.account, self._stack_exists)
        return next((region for region, exists in there.items() if exists), None), unchecked

    def _stack_exists(self, cloudformation: Any) -> bool:
        return describe_stack(cloudformation, self.stack) is not None

    def try_source(self, source: str, call: Callable[[], _Answer], nothing: _Answer) -> _Answer:
        """What a source answers; `nothing` where it does not answer, which `failed_sources` then records."""
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            self.failed_sources[source] = reason_of(error)
            return nothing


def keep_tag(account: Account, bucket: str) -> str | None:
    """The value of a bucket's tag `shoal:keep`; None without one. Raises AWS's errors where that cannot be read."""
    try:
        tags = read_tags(account.client("s3").get_bucket_tagging(Bucket=bucket)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] in ("NoSuchTagSet", "NoSuchBucket"):
            return None
        raise
    return tags.get(_KEEP)


def keep_unknown(error: BotoCoreError | ClientError) -> OwnershipUnknownError:
    """The error for a bucket that must not be emptied, because this one occurred when its tag or data were read."""
    return OwnershipUnknownError(f"whether its data are to be kept cannot be read ({reason_of(error)})")


def ask_other_regions(account: Account, ask: Callable[[Any], _Answer]) -> tuple[dict[str, _Answer], str]:
    """What `ask` answers of CloudFormation's client in each other region of the account, by region.

    Also returns the regions that do not answer, with the reason for one; empty where all do.
    """
    try:
        found = account.client("ec2").describe_regions()["Regions"]
    except (BotoCoreError, ClientError) as error:
        return {}, f"the other regions ({reason_of(error)})"
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
    """Whether CloudFormation gave this name, STACK-LOGICALID-LETTERS, to a resource of exactly this stack."""
    return name.rsplit("-", 2)[0] == stack


def listed_tags(owner: Owner, record: ResourceRecord) -> bool:
    """By the tags in the service's list."""
    return owner.of(next((record[key] for key in ("Tags", "TagSet", "TagList") if record.get(key)), None))


def fetched_tags(service: str, operation: str, answer: str, **parameters: str) -> Owned:
    """By tags that need a call for each resource.

    Called only where the record `may_own`. `parameters` are the operation's: a key of the record, or a value.
    `answer` is the path to the tags in the answer, with dots.
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
            raise OwnershipUnknownError(f"its tags cannot be read ({reason_of(error)})") from None
        for key in answer.split("."):
            found = found.get(key) or {}
        return owner.of(found)

    return owned


def in_vpc(owned: Owned) -> Owned:
    """Also everything in the owner's VPCs, because it would block their deletion."""
    return lambda owner, record: owned(owner, record) or record.get("VpcId") in owner.networks


def in_stack(cloudformation: str, name: str) -> Owned:
    """For resources without tags: by the list of the stack's resources, or by a name that CloudFormation gave."""

    def owned(owner: Owner, record: ResourceRecord) -> bool:
        return generated_by(owner.stack, record[name]) or (cloudformation, record[name]) in owner.stack_resources

    return owned


def never_owned(_owner: Owner, _record: ResourceRecord) -> bool:
    """Never."""
    return False
