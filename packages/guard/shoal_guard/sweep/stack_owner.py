"""`StackOwner`, the owner of resources for `left_of`: a CloudFormation stack, a tag, or a name prefix.

A stack matches only by its whole name: `web-2` is not part of `web`. A prefix matches names of stacks and of resources.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from shoal_guard.errors import NameOnlyError, OwnershipUnknownError, SweepError
from shoal_guard.sweep.account import Account, ResourceRecord, describe_stack, read_tags
from shoal_guard.sweep.owner import Owner

if TYPE_CHECKING:
    from shoal_guard.sweep.kinds import ResourceKind

_STACK_TAG = "aws:cloudformation:stack-name"
_GONE = "DELETE_COMPLETE"
_NEVER_MADE = re.compile(r"CREATE_FAILED|IMPORT_(?!COMPLETE).+")
"""Statuses of resources that may never have belonged to the stack, such as another owner's bucket of the same name."""
_STACKS, _TAGS = "CloudFormation's list of stacks", "the tagging service"
_OTHERS = "CloudFormation's lists of other stacks' resources"
_IDENTIFIER = re.compile(r"[a-z]+-[0-9a-f]{8,17}|j-[0-9A-Z]+")
"""Pattern of the identifiers that EC2, EFS and EMR generate."""
_LONGEST_TAG = 128
_STACK = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")


class StackOwner(Owner):
    """Owner of the resources of a stack, of a tag, or of a name prefix.

    A tag or CloudFormation's record assigns a resource to the owner. If only the generated name of a resource matches,
    its ownership is uncertain. A resource with the tag of another stack belongs to that stack.
    """

    def __init__(self, account: Account, *, stack: str = "", tag: str = "", prefix: str = "") -> None:
        """Create the owner from exactly one of `stack`, `tag` (KEY=VALUE, or KEY for any value) and `prefix`.

        Raises ValueError if the arguments are not valid.
        """
        super().__init__(account)
        self._key, self._equals, self._value = tag.partition("=")
        if sum(map(bool, (stack, tag, prefix))) != 1:
            raise ValueError("pass exactly one of stack, tag and prefix")
        if stack and not _STACK.fullmatch(stack):
            raise ValueError(f"'{stack}' is not a stack name: use letters, digits and dashes, and start with a letter")
        if tag and not 0 < len(self._key) <= _LONGEST_TAG:
            raise ValueError(f"'{tag}' is not a tag; write KEY=VALUE, with a key of at most {_LONGEST_TAG} characters")
        self._name, self._prefix = stack, prefix
        self.text = f"the stack {stack}" if stack else f"the tag {tag}" if tag else f"names with the prefix '{prefix}'"
        """Description of the owner for messages."""

    def of(self, tags: Iterable[Mapping[str, str]] | Mapping[str, str] | None) -> bool:
        """Return whether these tags, in any of AWS's formats, match the stack, the tag or the prefix."""
        read = read_tags(tags)
        if self._key:
            return read.get(self._key) == self._value if self._equals else self._key in read
        return self._is_stack(read.get(_STACK_TAG, "")) or (
            bool(self._prefix) and read.get("Name", "").startswith(self._prefix)
        )

    def owns_by_name(self, kind: "ResourceKind", identifier: str, record: ResourceRecord) -> bool:
        """Return whether a resource belongs to the owner according to CloudFormation's record or the name prefix.

        A log group or a snapshot belongs to the owner of its source. Raises NameOnlyError if the only evidence is a
        generated name or a failed creation.
        """
        if self._key:
            return False
        status = self._recorded.get((kind.cloudformation, identifier), "")
        if _NEVER_MADE.fullmatch(status):
            raise NameOnlyError(
                f"its last status in CloudFormation is {status}, so it may never have belonged to this stack; check "
                "it, and delete it yourself"
            )
        if (kind.cloudformation, identifier) in self.stack_resources or self._is_created_by_stack(
            kind, identifier, record
        ):
            return not self._is_of_another(kind, identifier, record)
        own = str(record.get(kind.name, ""))
        names = {name for name in (_last_name(identifier), own) if name and not _IDENTIFIER.fullmatch(name)}
        if self._prefix:
            return any(name.startswith(self._prefix) for name in names)
        given = any(self._is_given(kind, name) for name in names)
        if given and not self._is_of_another(kind, identifier, record):
            raise NameOnlyError("only its name matches this stack; check it, and delete it yourself")
        return False

    def _is_of_another(self, kind: "ResourceKind", identifier: str, record: ResourceRecord) -> bool:
        """Return whether a resource has the tag of another stack, for example because that stack imported it.

        Raises OwnershipUnknownError if the record has no tags and the tagging service does not answer.
        """
        if not self._name:
            return False
        named = self._tagged_stack(kind, identifier, record)
        if named is None and _TAGS in self.failed_sources:
            raise OwnershipUnknownError(
                f"it is unknown whether another stack owns it now ({self.failed_sources[_TAGS]})"
            )
        return named is not None and not self._is_stack(named)

    def _tagged_stack(self, kind: "ResourceKind", identifier: str, record: ResourceRecord) -> str | None:
        """Return the name of the stack in a resource's tags, or None if no tag names a stack."""
        listed = next((record[key] for key in ("Tags", "TagSet", "TagList") if record.get(key)), None)
        return read_tags(listed).get(_STACK_TAG) or next(
            (tags.get(_STACK_TAG) for arn, tags in self._tagged if kind.identifier_in(arn) == identifier), None
        )

    def stack_of(self, kind: "ResourceKind", identifier: str, record: ResourceRecord) -> tuple[str, bool]:
        """Return the name of a resource's stack, and whether this is an existing stack that does not match the owner.

        The name comes from a tag or from CloudFormation's lists of resources. Raises OwnershipUnknownError if no tag
        names a stack and the lists are unreadable.
        """
        tagged = self._tagged_stack(kind, identifier, record) or ""
        if self._is_stack(tagged):
            return tagged, False
        others = {each["StackName"] for each in self._others}
        owner = tagged if tagged in others else self._others_resources.get((kind.cloudformation, identifier))
        if not (owner or tagged) and (failed := self.failed_sources.keys() & {_STACKS, _OTHERS}):
            reason = self.failed_sources[failed.pop()]
            raise OwnershipUnknownError(f"it is unknown whether a stack of another name owns it ({reason})")
        return owner or tagged, bool(owner)

    @property
    def _others(self) -> list[ResourceRecord]:
        """Existing stacks that do not match the owner."""
        return [each for each in self._every_stack if each["StackStatus"] != _GONE and each not in self._stacks]

    @cached_property
    def _others_resources(self) -> dict[tuple[str, str], str]:
        """Stack name for each resource of the stacks that do not match the owner, by resource type and identifier."""

        def listed() -> dict[tuple[str, str], str]:
            return {
                (each["ResourceType"], each.get("PhysicalResourceId", "")): stack["StackName"]
                for stack in self._others
                for each in self._list_stack("list_stack_resources", "StackResourceSummaries", stack["StackId"])
                if each["ResourceStatus"] != _GONE and not _NEVER_MADE.fullmatch(each["ResourceStatus"])
            }

        return self.try_source(_OTHERS, listed, {})

    def _is_created_by_stack(self, kind: "ResourceKind", identifier: str, record: ResourceRecord) -> bool:
        """Return whether a resource is a log group or a snapshot of a resource that the owner's stacks have or had."""
        return any(
            (of, match[1]) in self._created_resources
            for key, pattern, of in kind.made_of
            if (match := re.fullmatch(pattern, str(record.get(key, identifier))))
        )

    def _is_given(self, kind: "ResourceKind", name: str) -> bool:
        """Return whether `name` is one that CloudFormation generates for this kind: STACK-LOGICALID-LETTERS.

        Names in S3 and RDS are in lower case. The name of an RDS final snapshot has `snapshot` after the stack's name.
        """
        stack = self._name.lower() if kind.lower_case else self._name
        if kind.is_snapshot:
            stack = f"{self._name.lower()}-snapshot"
        return bool(re.fullmatch(rf"{re.escape(stack)}-[A-Za-z0-9]+-[A-Za-z0-9]{{8,}}", name))

    @cached_property
    def arns(self) -> list[str]:
        """ARNs of the resources with the owner's tags that AWS's tagging service lists."""
        return [arn for arn, tags in self._tagged if self.of(tags)]

    @cached_property
    def _tagged(self) -> list[tuple[str, dict[str, str]]]:
        """ARNs and tags of the resources that AWS's tagging service lists.

        For a tag as the owner, these are the resources with this tag. For a stack, these are the resources with the tag
        of any stack. For a prefix, these are all resources.
        """
        key = {"Key": self._key, **({"Values": [self._value]} if self._equals else {})} if self._key else None
        filters = [] if self._prefix else [key or {"Key": _STACK_TAG}]

        def listed() -> list[tuple[str, dict[str, str]]]:
            found = self.account.items(
                "resourcegroupstaggingapi", "get_resources", "ResourceTagMappingList", TagFilters=filters
            )
            return [(each["ResourceARN"], read_tags(each.get("Tags"))) for each in found]

        return self.try_source(_TAGS, listed, [])

    def check_deletable(self) -> None:
        """Raise SweepError if a stack of the owner exists, or if its existence is unknown.

        CloudFormation must delete an existing stack, because it knows in which order to delete the resources.
        """
        living = self.living
        for source in (_STACKS, *((_TAGS,) if self._key else ())):
            if source in self.failed_sources:
                raise SweepError(
                    f"nothing was deleted, because it is unknown whether a matching stack exists: {source} did not "
                    f"answer ({self.failed_sources[source]}); use credentials that may read it"
                )
        if living:
            raise SweepError(
                f"nothing was deleted, because matching stacks exist: {', '.join(living)}; delete them first "
                "(cdk destroy, or aws cloudformation delete-stack --stack-name NAME), then run the sweep again"
            )

    @property
    def living(self) -> list[str]:
        """Names of the owner's existing stacks. For a tag, these are the stacks that have resources with the tag."""
        return [stack["StackName"] for stack in self._stacks if stack["StackStatus"] != _GONE]

    @cached_property
    def stack_resources(self) -> set[tuple[str, str]]:
        """Types and identifiers of the resources that the owner's stacks have, or kept when the stacks were deleted
        within the last 90 days."""
        return {resource for resource in self._created_resources if self._recorded[resource] != _GONE}

    @property
    def _created_resources(self) -> set[tuple[str, str]]:
        """Types and identifiers of all resources that the owner's stacks have or had."""
        return {resource for resource, status in self._recorded.items() if not _NEVER_MADE.fullmatch(status)}

    @cached_property
    def _recorded(self) -> dict[tuple[str, str], str]:
        """Last status of each resource of the owner's stacks, including deleted resources, by type and identifier.

        CloudFormation lists the resources of existing stacks. The events of the last 90 days show which resources a
        stack kept, even if the stack is deleted.
        """
        if self._key:
            return {}

        def recorded() -> dict[tuple[str, str], str]:
            found: dict[tuple[str, str], str] = {}
            for stack in self._stacks:
                living = stack["StackStatus"] != _GONE
                lists = [("list_stack_resources", "StackResourceSummaries")] if living else []
                records = (
                    self._list_stack(*each, stack["StackId"])
                    for each in (*lists, ("describe_stack_events", "StackEvents"))
                )
                for record in chain.from_iterable(records):  # events start with the newest
                    if identifier := record.get("PhysicalResourceId"):
                        found.setdefault((record["ResourceType"], identifier), record["ResourceStatus"])
            return found

        return self.try_source("CloudFormation's record", recorded, {})

    def _list_stack(self, operation: str, key: str, stack: str) -> Iterator[ResourceRecord]:
        return self.account.items("cloudformation", operation, key, StackName=stack)

    @cached_property
    def _every_stack(self) -> list[ResourceRecord]:
        """All stacks of the region, including stacks deleted within the last 90 days."""
        return self.try_source(
            _STACKS, lambda: list(self.account.items("cloudformation", "list_stacks", "StackSummaries")), []
        )

    @cached_property
    def _stacks(self) -> list[ResourceRecord]:
        """The owner's stacks and their nested stacks. For a tag, these are the stacks that have resources with the
        tag."""
        wanted = {tags.get(_STACK_TAG) for _arn, tags in self._tagged} if self._key else set()
        every = self._every_stack
        named = [each for each in every if each["StackName"] in wanted or self._is_named(each["StackName"])]
        roots = {each["StackId"] for each in named}
        return [*named, *(each for each in every if each.get("RootId") in roots and each not in named)]

    def is_of_this_region(self, kind: "ResourceKind", identifier: str) -> bool:
        """Return whether a global resource belongs to the stack in this region.

        Raises NameOnlyError for a tag or a prefix, because the region is unknown without the name of a stack.
        """
        if self._name or (kind.cloudformation, identifier) in self.stack_resources:
            return super().is_of_this_region(kind, identifier)
        raise NameOnlyError("it belongs to no region, so another region may use it; check it, and delete it yourself")

    def _stack_exists(self, cloudformation: object) -> bool:
        return describe_stack(cloudformation, self._name) is not None

    def _is_named(self, name: str) -> bool:
        return name == self._name if self._name else bool(self._prefix) and name.startswith(self._prefix)

    def _is_stack(self, name: str) -> bool:
        return self._is_named(name) or (bool(name) and any(each["StackName"] == name for each in self._stacks))


def _last_name(identifier: str) -> str:
    """Return the last part of an ARN or of a path, such as the name of a service's log group."""
    return re.split("[:/]", identifier)[-1] if identifier.startswith(("arn:", "/aws/")) else identifier
