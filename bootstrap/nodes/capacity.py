"""What to do while AWS has fewer nodes than were asked for: wait, pay for on demand, go to another zone, or give up.

Only the decision, of what is known at one moment; `scale_up` carries it out. The easy mistake is to run from a quota:
another zone has the same one, and every move ends the nodes that are there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

SPOT_SECONDS = 600
"""How long a group on the spot market may be short of nodes though AWS refuses nothing."""


class Refusal(Enum):
    """Why AWS started no instance."""

    QUOTA = "quota"
    NOT_OFFERED = "not offered"
    NO_SPOT = "no spot capacity"
    NO_CAPACITY = "no capacity"
    OTHER = "other"


_WORDS = (
    (
        Refusal.QUOTA,
        r"vcpulimitexceeded|vcpu (capacity|limit)|instancelimitexceeded|current instance limit"
        r"|max ?spot ?instance ?count ?exceeded",
    ),
    (Refusal.NOT_OFFERED, r"not supported in your requested availability zone"),
    (Refusal.NO_SPOT, r"unfulfillablecapacity|no spot capacity|spotmaxpricetoolow"),
    (Refusal.NO_CAPACITY, r"insufficient ?(instance ?)?capacity|\bsufficient\b.*\bcapacity"),
)


def classify_refusal(message: str) -> Refusal:
    """What kind the reason is that AWS gives for a launch that failed."""
    return next((kind for kind, words in _WORDS if re.search(words, message, re.IGNORECASE | re.DOTALL)), Refusal.OTHER)


@dataclass(frozen=True, kw_only=True)
class GroupState:
    """A node group that was asked for nodes."""

    name: str
    instance_type: str
    size: int
    existing: int
    """The nodes that it has, those that boot among them."""
    spot: bool
    """Whether what is missing is asked of the spot market."""
    refusals: tuple[str, ...] = ()
    """What AWS said of launches that failed since, the newest first."""

    @property
    def short(self) -> bool:
        """Whether nodes are missing."""
        return self.existing < self.size

    def last_refusal(self, kind: Refusal) -> str | None:
        """What AWS said last of this kind, while nodes are missing."""
        return next((message for message in self.refusals if self.short and classify_refusal(message) is kind), None)


@dataclass(frozen=True)
class Wait:
    """Nothing to do yet."""


@dataclass(frozen=True)
class TakeOnDemand:
    """Ask for what is missing in these groups on demand, in the same zone."""

    groups: tuple[str, ...]


@dataclass(frozen=True)
class MoveZone:
    """All groups to the next zone, as this one has no nodes for a group."""

    group: str


@dataclass(frozen=True)
class GiveUp:
    """No nodes can be had; why, for the user."""

    sentence: str


Action = Wait | TakeOnDemand | MoveZone | GiveUp


def next_action(groups: Sequence[GroupState], *, seconds: float, tried: Sequence[str], zones_left: bool) -> Action:
    """What to do about the nodes that are missing.

    Args:
        groups: all of them, as they are now.
        seconds: since they were asked, or the last action was taken.
        tried: the zones so far, the present one last.
        zones_left: whether there is a zone that was not tried.
    """
    for group in groups:
        if message := group.last_refusal(Refusal.QUOTA):
            return GiveUp(
                f"AWS refuses the account more {group.instance_type} for '{group.name}', and says: {_quote(message)}; "
                "ask for a higher quota in Service Quotas, or take fewer or smaller nodes in the topology"
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
    """Whether waiting for spot instances is over."""
    # What AWS began on the spot market it may still refuse after the group was asked on demand.
    if group.last_refusal(Refusal.NO_SPOT):
        return True
    return (
        group.spot and group.short and (seconds >= SPOT_SECONDS or group.last_refusal(Refusal.NO_CAPACITY) is not None)
    )


def _exhausted(group: GroupState, message: str, tried: Sequence[str]) -> str:
    where = tried[0] if len(tried) == 1 else f"{', '.join(tried[:-1])} and {tried[-1]}"
    elsewhere = "another zone, " if len(tried) == 1 else ""
    return (
        f"AWS has no {group.instance_type} for '{group.name}' in {where} now, and says: {_quote(message)}; "
        f"try again later, or take {elsewhere}another instance type or another region in the topology"
    )


def _quote(message: str) -> str:
    return f'"{message.strip().removesuffix("Launching EC2 instance failed.").strip()}"'
