"""What of an account belongs to any CloudFormation stack, tag, or name prefix: the owner that `shoal sweep` looks for.

A stack's name is compared whole: `web-2` is a neighbour of `web`. A prefix compares how the names of stacks and of
resources begin.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from bootstrap.aws.account import Account, ResourceRecord, read_tags
from bootstrap.aws.ownership import Ownership
from common.display import plural, printable
from common.errors import UsageError

_STACK_TAG = "aws:cloudformation:stack-name"
_GONE = "DELETE_COMPLETE"
_LOG = "AWS::Logs::LogGroup"
_SNAPSHOTS = {
    "AWS::EC2::Snapshot": "VolumeId",
    "AWS::RDS::DBSnapshot": "DBInstanceIdentifier",
    "AWS::RDS::DBClusterSnapshot": "DBClusterIdentifier",
}
"""Of each type of snapshot the key of what it is of."""
_LONGEST_TAG = 128
_STACK = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")


class Claim(Ownership):
    """What an account reports under the name of a stack, a tag, or a prefix: one of the three."""

    def __init__(self, account: Account, *, stack: str = "", tag: str = "", prefix: str = "") -> None:
        """Check the claim. `tag` is KEY=VALUE, or KEY for any value. Raises UsageError where it is not valid."""
        super().__init__(account, None)
        self._key, self._equals, self._value = tag.partition("=")
        if sum(map(bool, (stack, tag, prefix))) != 1:
            raise UsageError("name what to look for: one of --stack NAME, --tag KEY=VALUE and --prefix PREFIX")
        if stack and not _STACK.fullmatch(stack):
            raise UsageError(f"'{stack}' is no name of a stack: letters, digits and dashes, and a letter first")
        if tag and not 0 < len(self._key) <= _LONGEST_TAG:
            raise UsageError(f"'{tag}' is no tag; write KEY=VALUE, with a key of at most {_LONGEST_TAG} characters")
        self.stack, self._prefix = stack, prefix
        self.text = f"the stack {stack}" if stack else f"the tag {tag}" if tag else f"names that begin with '{prefix}'"
        """What is looked for, as a person reads it."""

    def of(self, tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> bool:
        """Whether these tags, in any of AWS's forms, are those of the claim."""
        read = read_tags(tags)
        if self._key:
            return read.get(self._key) == self._value if self._equals else self._key in read
        return self._is_stack(read.get(_STACK_TAG, "")) or (
            bool(self._prefix) and read.get("Name", "").startswith(self._prefix)
        )

    def may_own(self, _record: ResourceRecord) -> bool:
        """Always: other names than Shoal's say nothing."""
        return True

    def owns_by_name(self, cloudformation: str, identifier: str, record: ResourceRecord) -> bool:
        """Whether CloudFormation's record has it, or its name begins with the prefix, or the name is one that
        CloudFormation gave to a resource of the stack, or it is such a resource's log or snapshot."""
        if self._key:
            return False
        if (cloudformation, identifier) in self.stack_resources:
            return True
        parts = set(re.split("[:/]", identifier))
        sources = parts if cloudformation == _LOG else {record.get(_SNAPSHOTS.get(cloudformation, ""))}
        if sources & {recorded for _kind, recorded in self._recorded}:
            return True
        names = {identifier, *parts, *_names_in(record)}
        if self._prefix:
            return any(name.startswith(self._prefix) for name in names)
        return any(map(self._is_given, names))

    def _is_given(self, name: str) -> bool:
        """Whether it is STACK-LOGICALID-LETTERS. Names of S3 and RDS are in lower case; those of the snapshots that an
        instance of RDS leaves have `snapshot` behind the stack. The letters are told from a word by a digit or a
        capital, which all but one in fifty of them have."""
        for stack in (self.stack, self.stack.lower(), f"{self.stack.lower()}-snapshot"):
            letters = re.fullmatch(rf"{re.escape(stack)}-[A-Za-z0-9]+-([A-Za-z0-9]{{8,}})", name)
            if letters and re.search("[0-9A-Z]", letters[1]):
                return True
        return False

    @cached_property
    def arns(self) -> list[str]:
        """The ARNs of what has the tags, by AWS's tagging service."""

        def listed() -> list[str]:
            key, values = (
                (self._key, [self._value] if self._equals else []) if self._key else (_STACK_TAG, [self.stack])
            )
            filters = [] if self._prefix else [{"Key": key, "Values": values}]
            found = self.account.items(
                "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters
            )
            return [each["ResourceARN"] for each in found if self.of(each.get("Tags"))]

        return self.try_source("the tagging service", listed, [])

    def check_deletable(self) -> None:
        """Raise UsageError where a claimed stack exists: it deletes its resources itself, in their order."""
        if self.living:
            named = ", ".join(map(printable, self.living))
            raise UsageError(
                f"nothing was deleted, because {plural(len(self.living), 'stack')} of these exist: {named}; delete "
                "them first (cdk destroy, or aws cloudformation delete-stack --stack-name NAME), then sweep what they "
                "leave"
            )

    @property
    def living(self) -> list[str]:
        """The names of the claimed stacks that exist."""
        return [name for name, status, _identifier in self._stacks if status != _GONE]

    @cached_property
    def stack_resources(self) -> set[tuple[str, str]]:
        """Types and identifiers of what the claimed stacks have or kept, also those deleted within 90 days."""
        return {resource for resource, status in self._recorded.items() if status != _GONE}

    @cached_property
    def _recorded(self) -> dict[tuple[str, str], str]:
        """The last status of each resource of the claimed stacks, by type and identifier, also of what they deleted.

        A living stack lists what it has, and the events of 90 days tell what it, or a deleted one, kept.
        """

        def listed(operation: str, key: str, stack: str) -> Iterator[ResourceRecord]:
            return self.account.items("cloudformation", operation, key, StackName=stack)

        def recorded() -> dict[tuple[str, str], str]:
            found: dict[tuple[str, str], str] = {}
            for _name, status, stack in self._stacks:
                lists = [("list_stack_resources", "StackResourceSummaries")] if status != _GONE else []
                records = (listed(*each, stack) for each in (*lists, ("describe_stack_events", "StackEvents")))
                for record in chain.from_iterable(records):  # events: the newest first
                    if identifier := record.get("PhysicalResourceId"):
                        found.setdefault((record["ResourceType"], identifier), record["ResourceStatus"])
            return found

        return self.try_source("CloudFormation's record", recorded, {})

    @cached_property
    def _stacks(self) -> list[tuple[str, str, str]]:
        """Name, status and id of each claimed stack."""

        def listed() -> list[tuple[str, str, str]]:
            return [
                (stack["StackName"], stack["StackStatus"], stack["StackId"])
                for stack in self.account.items("cloudformation", "list_stacks", "StackSummaries")
                if self._is_stack(stack["StackName"])
            ]

        return [] if self._key else self.try_source("CloudFormation's list of stacks", listed, [])

    @property
    def elsewhere(self) -> str | None:
        """Another region with a stack of this name, which can own resources without a region; or None."""
        return super().elsewhere if self.stack else None

    @property
    def unchecked(self) -> str:
        """The regions that could not be checked for such a stack."""
        return super().unchecked if self.stack else ""

    def _is_stack(self, name: str) -> bool:
        return name == self.stack if self.stack else bool(self._prefix) and name.startswith(self._prefix)


def _names_in(record: ResourceRecord) -> Iterator[str]:
    """The names that a service's list gives, under whatever key: LoadBalancerName, GroupName, name."""
    return (value for key, value in record.items() if key.lower().endswith("name") and isinstance(value, str))
