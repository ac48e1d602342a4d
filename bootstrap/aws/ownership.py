"""Finds out whether a resource belongs to a deployment: by tag, by name, or by the VPC that it is in.

Do not compare names by a prefix, because `Shoal-a-` also begins the names of the deployment `a-b`. Names are split from
their end, where neither CloudFormation's random letters nor a logical id has a dash, and compared whole. Do not treat a
refusal as a no: raise OwnershipUnknownError, or add the source to `failed_sources`.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import stacks
from bootstrap.aws.account import Account, ResourceRecord, read_tags
from common.errors import ShoalError
from infra import policies, topology

Kind = Any
"""A `ResourceKind` of `bootstrap/removal/kinds.py`, a room above this one."""

_AT_ONCE = 8
_OF_TOOLKIT = f"cdk-{policies.QUALIFIER}-"
_ABSENT = ("NoSuch", "NotFound", "DoesNotExist", "NonExistent")
"""Parts of the codes of errors that mean that there are no tags, or that the resource is gone."""
_Answer = TypeVar("_Answer")

Owned = Callable[["Ownership", ResourceRecord], bool]
"""Whether a record belongs to the deployment. Raises OwnershipUnknownError where that is unknown."""


class OwnershipUnknownError(ShoalError):
    """The owner of a resource cannot be found out; the text is the reason."""


class NameOnlyError(OwnershipUnknownError):
    """Nothing certain tells the owner, whoever asks; the text says what to do."""


class Ownership:
    """What an account reports under a deployment's name."""

    def __init__(self, account: Account, deployment: str | None) -> None:
        """Of a deployment of Shoal; None where the owner is none, and `stack` is set by the subclass."""
        self.account = account
        self.deployment = deployment
        self.stack = topology.stack_name(deployment) if deployment else ""
        self.failed_sources: dict[str, str] = {}
        """The sources that did not answer, each with the reason."""

    def of(self, tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> bool:
        """Whether these tags, in any of AWS's forms, name the deployment."""
        return read_tags(tags).get(topology.TAG_DEPLOYMENT) == self.deployment

    def may_own(self, record: ResourceRecord) -> bool:
        """Whether a record's tags are worth a call: all names from CloudFormation contain `shoal`, and the tagging
        service finds the rest. The toolkit's own names contain it, too, and its tags may not be readable."""
        texts = (value.lower() for value in record.values() if isinstance(value, str))
        return any("shoal" in text.replace(_OF_TOOLKIT, "") for text in texts)

    def owns_by_name(self, _kind: Kind, _identifier: str, _record: ResourceRecord) -> bool:
        """Whether a resource belongs to it by what is recorded of its name, whatever its kind: of deployments never."""
        return False

    def stack_of(self, _kind: Kind, _identifier: str, _record: ResourceRecord) -> tuple[str, bool]:
        """The stack that owns it, and whether that is a living one of somebody else: of deployments it is not asked."""
        return "", False

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

    @cached_property
    def networks(self) -> set[str]:
        """The ids of the deployment's own VPCs."""

        def listed() -> set[str]:
            vpcs = self.account.items("ec2", "describe_vpcs", "Vpcs")
            return {vpc["VpcId"] for vpc in vpcs if self.of(vpc.get("Tags"))}

        return self.try_source("the VPCs", listed, set())

    @cached_property
    def arns(self) -> list[str]:
        """The ARNs that AWS's tagging service reports for its tag: not all types, and some that are deleted already."""

        def listed() -> list[str]:
            filters = [{"Key": topology.TAG_DEPLOYMENT, "Values": [self.deployment]}]
            found = self.account.items(
                "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters
            )
            return [each["ResourceARN"] for each in found]

        return self.try_source("the tagging service", listed, [])

    @cached_property
    def stack_resources(self) -> set[tuple[str, str]]:
        """Types and identifiers in the stacks of its name, also in stacks deleted within 90 days."""

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
        return stacks.describe(cloudformation, self.stack) is not None

    def try_source(self, source: str, call: Callable[[], _Answer], nothing: _Answer) -> _Answer:
        """What a source answers; `nothing` where it does not answer, which `failed_sources` then records."""
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            self.failed_sources[source] = reason_of(error)
            return nothing


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


def reason_of(error: BotoCoreError | ClientError) -> str:
    """AWS's message for a refusal, or why there was no answer."""
    message = error.response["Error"].get("Message") if isinstance(error, ClientError) else None
    return (message or str(error)).rstrip(".")


def generated_by(stack: str, name: str) -> bool:
    """Whether CloudFormation gave this name, STACK-LOGICALID-LETTERS, to a resource of exactly this stack."""
    return name.rsplit("-", 2)[0] == stack


def listed_tags(ownership: Ownership, record: ResourceRecord) -> bool:
    """By the tags in the service's list."""
    return ownership.of(next((record[key] for key in ("Tags", "TagSet", "TagList") if record.get(key)), None))


def fetched_tags(service: str, operation: str, answer: str, **parameters: str) -> Owned:
    """By tags that need a call for each resource.

    Called only where the record `may_own`. `parameters` are the operation's: a key of the record, or a value.
    `answer` is the path to the tags in the answer, with dots.
    """

    def owned(ownership: Ownership, record: ResourceRecord) -> bool:
        if not ownership.may_own(record):
            return False
        values = {name: record.get(value, value) for name, value in parameters.items()}
        try:
            found = getattr(ownership.account.client(service), operation)(**values)
        except (BotoCoreError, ClientError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            if any(word in code for word in _ABSENT):
                return False
            raise OwnershipUnknownError(f"its tags cannot be read ({reason_of(error)})") from None
        for key in answer.split("."):
            found = found.get(key) or {}
        return ownership.of(found)

    return owned


def in_vpc(owned: Owned) -> Owned:
    """Also everything in the deployment's VPCs, because it would block their deletion."""
    return lambda ownership, record: owned(ownership, record) or record.get("VpcId") in ownership.networks


def in_stack(cloudformation: str, name: str) -> Owned:
    """For resources without tags: by the list of the stack's resources, or by a name that CloudFormation gave."""

    def owned(ownership: Ownership, record: ResourceRecord) -> bool:
        return (
            generated_by(ownership.stack, record[name]) or (cloudformation, record[name]) in ownership.stack_resources
        )

    return owned


def never_owned(_ownership: Ownership, _record: ResourceRecord) -> bool:
    """Never: deployments create none of these."""
    return False
