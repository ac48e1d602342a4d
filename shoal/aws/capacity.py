"""Decision on what to do while AWS has started fewer nodes than requested: wait, request on-demand instances, change
the zone, or give up.

`scale_up` carries out the decision. Do not change the zone because of a quota. A quota applies to all zones, and every
change of the zone terminates the existing nodes.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

SPOT_SECONDS = 600
"""Maximum seconds that a group waits for spot instances if AWS does not refuse them."""


class Refusal(Enum):
    """Reason why AWS started no instance."""

    QUOTA = "quota"
    NOT_OFFERED = "not offered"
    NO_SPOT = "no spot capacity"
    NO_CAPACITY = "no capacity"
    PASSING = "passing"
    """Temporary error. AWS retries by itself."""
    PERMANENT = "permanent"
    """Refusal that lasts until somebody changes the account, a policy or the topology."""
    OTHER = "other"


_PATTERNS = (
    (
        Refusal.QUOTA,
        r"vcpulimitexceeded|vcpu (capacity|limit)|instancelimitexceeded|current instance limit"
        r"|max ?spot ?instance ?count ?exceeded",
    ),
    (
        Refusal.NOT_OFFERED,
        r"not supported in your requested availability zone|requested configuration is currently not supported",
    ),
    (Refusal.NO_SPOT, r"unfulfillablecapacity|no spot capacity|spotmaxpricetoolow"),
    (Refusal.NO_CAPACITY, r"insufficient ?(instance ?)?capacity|\bsufficient\b.*\bcapacity"),
    (Refusal.PASSING, r"requestlimitexceeded|throttl|(?<!client\.)internal ?error|unavailable"),
    (
        Refusal.PERMANENT,
        r"not eligible for free tier|currently being verified|being validated|pendingverification|currently blocked"
        r"|\bblocked\b.*account|not authorized|unauthorizedoperation|explicit deny|\bkms\b|kmskey"
        r"|client error on launch|image id.*does not exist|invalidamiid",
    ),
)
"""Patterns of AWS's messages. The patterns of permanent refusals are from the error codes in EC2's API reference."""

REPEATED = 2
"""Number of equal refusals after which a refusal of an unknown kind counts as permanent."""
_VARYING = re.compile(r"[\w+/=-]*\d[\w+/=-]*")
"""Pattern of words that differ between messages of the same kind: ids, addresses and encoded explanations."""


def classify_refusal(message: str) -> Refusal:
    """Return the kind of refusal, given AWS's message about a failed launch."""
    matches = (kind for kind, words in _PATTERNS if re.search(words, message, re.IGNORECASE | re.DOTALL))
    return next(matches, Refusal.OTHER)


@dataclass(frozen=True, kw_only=True)
class GroupState:
    """State of a node group while it is scaled up."""

    name: str
    instance_type: str
    size: int
    existing: int
    """Number of the group's nodes, including nodes that are booting."""
    spot: bool
    """Whether the missing nodes are requested as spot instances."""
    refusals: tuple[str, ...] = ()
    """AWS's messages about launches that failed since the request for nodes, the newest first."""

    @property
    def lacks_nodes(self) -> bool:
        """True if the group has fewer nodes than `size`."""
        return self.existing < self.size

    def last_refusal(self, kind: Refusal) -> str | None:
        """Return AWS's latest message of this kind, or None if there is no such message or no node is missing."""
        return next(
            (message for message in self.refusals if self.lacks_nodes and classify_refusal(message) is kind), None
        )

    def lasting_refusal(self) -> str | None:
        """Return AWS's message about a refusal that waiting does not resolve, or None if nodes might still start."""
        if message := self.last_refusal(Refusal.PERMANENT):
            return message
        unknown = [
            message for message in self.refusals if self.lacks_nodes and classify_refusal(message) is Refusal.OTHER
        ]
        counts = Counter(_VARYING.sub("", message) for message in unknown)
        return next((message for message in unknown if counts[_VARYING.sub("", message)] >= REPEATED), None)


@dataclass(frozen=True)
class Wait:
    """Wait: nothing to do yet."""


@dataclass(frozen=True)
class TakeOnDemand:
    """Request the missing nodes of these groups as on-demand instances, in the same zone."""

    groups: tuple[str, ...]


@dataclass(frozen=True)
class MoveZone:
    """Move all groups to the next zone, because the current zone has no capacity for `group`."""

    group: str


@dataclass(frozen=True)
class GiveUp:
    """Stop with an error, because no nodes are available. `sentence` is the message for the user."""

    sentence: str


Action = Wait | TakeOnDemand | MoveZone | GiveUp


def next_action(groups: Sequence[GroupState], *, seconds: float, tried: Sequence[str], zones_left: bool) -> Action:
    """Return the next action about missing nodes.

    Args:
        groups: State of all groups.
        seconds: Seconds since the request for nodes or the last action.
        tried: Names of the zones that were tried, with the current zone last.
        zones_left: Whether there is a zone that was not tried.
    """
    for group in groups:
        if message := group.last_refusal(Refusal.QUOTA):
            return GiveUp(
                f"AWS refuses more {group.instance_type} for '{group.name}' because of a quota: {_quote(message)}; "
                "request a higher quota in Service Quotas, or use fewer or smaller nodes in the topology"
            )
    for group in groups:
        if message := group.lasting_refusal():
            return GiveUp(
                f"AWS does not start {group.instance_type} for '{group.name}': {_quote(message)}; correct the cause, "
                "and try again (docs/how-to/recover.md lists causes)"
            )
    for group in groups:
        message = group.last_refusal(Refusal.NOT_OFFERED) or (
            None if group.spot else group.last_refusal(Refusal.NO_CAPACITY)
        )
        if message:
            return MoveZone(group.name) if zones_left else GiveUp(_exhausted(group, message, tried))
    scarce = tuple(group.name for group in groups if _lacks_spot(group, seconds))
    return TakeOnDemand(scarce) if scarce else Wait()


def _lacks_spot(group: GroupState, seconds: float) -> bool:
    """Return whether the missing nodes of a group should be requested as on-demand instances instead of spot
    instances."""
    # AWS can still refuse an earlier request for spot instances after the group was changed to on-demand instances.
    if group.last_refusal(Refusal.NO_SPOT):
        return True
    return (
        group.spot
        and group.lacks_nodes
        and (seconds >= SPOT_SECONDS or group.last_refusal(Refusal.NO_CAPACITY) is not None)
    )


def _exhausted(group: GroupState, message: str, tried: Sequence[str]) -> str:
    where = tried[0] if len(tried) == 1 else f"{', '.join(tried[:-1])} and {tried[-1]}"
    elsewhere = "a different zone, " if len(tried) == 1 else ""
    return (
        f"AWS has no {group.instance_type} for '{group.name}' in {where} now: {_quote(message)}; "
        f"try again later, or use {elsewhere}a different instance type or a different region in the topology"
    )


def _quote(message: str) -> str:
    return f'"{message.strip().removesuffix("Launching EC2 instance failed.").strip()}"'
