"""How it is told whose a thing is: by the deployment's tag, by its name, or by where it lies.

The easy mistake is a prefix: `Shoal-a-` begins the names of the deployment `a` and those of `a-b`. Names are taken
apart from their end, where neither CloudFormation's random letters nor a logical id has a dash, and compared whole.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.account import Account, Record
from infra import topology

_AT_ONCE = 8

Owned = Callable[["Claim", Record], bool]
"""Whether a thing, as its service's list has it, is the deployment's."""


class Claim:
    """A deployment's name, and what in an account is found by it."""

    def __init__(self, account: Account, deployment: str) -> None:
        self.account = account
        self.deployment = deployment
        self.stack = topology.stack_name(deployment)
        self.untold = ""
        """Why the tagging service could not be asked."""

    def of(self, tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> bool:
        """Whether these tags, in whichever of AWS's forms, name the deployment."""
        return read_tags(tags).get(topology.TAG_DEPLOYMENT) == self.deployment

    @cached_property
    def networks(self) -> set[str]:
        """The ids of its own VPCs."""
        vpcs = self.account.items("ec2", "describe_vpcs", "Vpcs")
        return {vpc["VpcId"] for vpc in vpcs if self.of(vpc.get("Tags"))}

    @cached_property
    def arns(self) -> list[str]:
        """What AWS's tagging service knows under its tag: not all types, and some things that are gone."""
        wanted = [{"Key": topology.TAG_DEPLOYMENT, "Values": [self.deployment]}]
        found = self.account.items(
            "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=wanted
        )
        try:
            return [each["ResourceARN"] for each in found]
        except ClientError as error:  # the services' own lists must do
            self.untold = error.response["Error"].get("Message") or str(error)
            return []

    @cached_property
    def record(self) -> set[tuple[str, str]]:
        """Types and identifiers of what the stacks of its name have, or had: AWS keeps deleted ones for 90 days."""
        stacks = self.account.items("cloudformation", "list_stacks", "StackSummaries")
        return {
            (resource["ResourceType"], resource.get("PhysicalResourceId", ""))
            for stack in stacks
            if stack["StackName"] == self.stack
            for resource in self.account.items(
                "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack["StackId"]
            )
        }

    @cached_property
    def elsewhere(self) -> str | None:
        """Another region in which a deployment of this name stands: what has no region may be that one's."""
        found = self.account.client("ec2").describe_regions()["Regions"]
        regions = sorted({str(each["RegionName"]) for each in found} - {self.account.region})
        clients = [self.account.client("cloudformation", region) for region in regions]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            there = pool.map(self._is_stack_of, clients)
            return next((region for region, stands in zip(regions, there, strict=True) if stands), None)

    def _is_stack_of(self, cloudformation: Any) -> bool:
        try:
            cloudformation.describe_stacks(StackName=self.stack)
        except ClientError:  # none there; or nobody may look there, and then nobody deployed
            return False
        return True


def read_tags(tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> dict[str, str]:
    """Tags by name, from any of the forms in which AWS's services tell them."""
    if isinstance(tags, Mapping):
        return dict(tags)
    pairs = ({key.lower(): value for key, value in tag.items()} for tag in tags or ())
    return {pair["key"]: pair.get("value", "") for pair in pairs}


def generated_by(stack: str, name: str) -> bool:
    """Whether CloudFormation gave this name, STACK-LOGICALID-LETTERS, to something of exactly this stack."""
    return name.rsplit("-", 2)[0] == stack


def tagged(claim: Claim, record: Record) -> bool:
    """By the tags that the list itself tells."""
    return claim.of(next((record[key] for key in ("Tags", "TagSet", "TagList") if record.get(key)), None))


def asked(service: str, operation: str, answer: str, **parameters: str | Callable[[Record], Any]) -> Owned:
    """By tags that must be asked for, a thing at a time.

    Only of things whose name speaks of Shoal: what CloudFormation names does, and the rest the tagging service finds.
    `parameters` are the operation's: a key of the record, or how to make the value from it; `answer` is the way to the
    tags in what it answers, with dots.
    """

    def owned(claim: Claim, record: Record) -> bool:
        if not any(isinstance(value, str) and "shoal" in value.lower() for value in record.values()):
            return False
        given = {
            name: value(record) if callable(value) else record.get(value, value) for name, value in parameters.items()
        }
        try:
            found = getattr(claim.account.client(service), operation)(**given)
        except ClientError as error:
            if _says_none(error):
                return False
            raise
        for key in answer.split("."):
            found = found.get(key) or {}
        return claim.of(found)

    return owned


def _says_none(error: ClientError) -> bool:
    """Whether it means that there are no such tags, no such thing any more, or that it is somebody else's."""
    code = error.response["Error"]["Code"]
    return any(word in code for word in ("NoSuch", "NotFound", "DoesNotExist", "NonExistent", "AccessDenied"))


def placed(owned: Owned) -> Owned:
    """Also whatever else lies in a VPC of the deployment, which it would keep from going."""
    return lambda claim, record: owned(claim, record) or record.get("VpcId") in claim.networks


def recorded(cloudformation: str, name: str) -> Owned:
    """What gets no tags: by CloudFormation's record of the deployment's stacks, or by the name that it gave."""

    def owned(claim: Claim, record: Record) -> bool:
        return generated_by(claim.stack, record[name]) or (cloudformation, record[name]) in claim.record

    return owned


def nobodys(_claim: Claim, _record: Record) -> bool:
    """Never the deployment's: it makes none of these."""
    return False
