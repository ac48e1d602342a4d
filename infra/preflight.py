"""Finds errors and unintended costs in a topology, without calls to AWS.

A rule is a function that yields one message for each problem. A rule must never raise, because `cdk destroy` reads the
same topologies. The findings apply only to AWS. They do not stop a deployment to the emulator, which also runs retired
instance types.
"""

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from infra import catalog, cost, managed_spec
from infra.topology import Topology

Level = Literal["error", "warning"]

_ENDING_SOON = datetime.timedelta(days=60)
_SHORTEST_RUN_MINUTES = 10

# Source: "supported lifecycle" of each release in the Amazon EMR release guide. AWS still starts releases after the end
# of their support.
_SUPPORT_ENDS = {
    "emr-7.10.0": datetime.date(2027, 8, 16),
    "emr-7.13.0": datetime.date(2028, 4, 22),
    "emr-7.14.0": datetime.date(2028, 9, 9),
}
"""Days of "End of support" by release, from the pages "Amazon EMR release 7.x.0", read on 2026-11-29. Support for
earlier releases ends earlier: for 7.3 on 2026-10-16, and for 7.4 on 2026-11-13."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Problem that a rule found. If it is an error, it stops the deployment. `sentence` is the message for the user."""

    level: Level
    rule: str
    sentence: str


def retired_type(topology: Topology) -> Iterator[str]:
    """Yield a problem for each field with an instance type that AWS no longer starts."""
    cluster = topology.preprocessing.groups if topology.preprocessing else ()
    named = [(f"preprocessing, {role}", name) for role, name, _, _ in cluster]
    for number, group in enumerate(topology.training, 1):
        named += [(f"training {number} ({group.name})", name) for name in group.types]
    for field, name in named:
        if retired := catalog.find(name).retired:
            yield (
                f"{field}: AWS retired {name} ({retired.since}) and no longer starts it; in "
                f"{topology.name}.yaml use {retired.successor}, its current equivalent."
            )


def support_ending(topology: Topology) -> Iterator[str]:
    """Yield a problem for each release or image of AWS if its support has ended or ends within 60 days. AWS still
    starts it."""
    today = datetime.datetime.now(tz=datetime.UTC).date()
    for supported, end, advice in supported_by_aws(topology):
        if end <= today + _ENDING_SOON:
            yield f"{supported} {'ended' if end <= today else 'ends'} on {end}; {advice}."


def supported_by_aws(topology: Topology) -> Iterator[tuple[str, datetime.date, str]]:
    """Yield the EMR release and AWS's images that the topology uses, each with the end of its support and advice."""
    release = topology.preprocessing.release if topology.preprocessing else None
    if release and (end := support_ends(release)):
        yield f"preprocessing, release: AWS's support for {release}", end, f"{newest_release()} is newer"
    advice = "install a newer version of Shoal, or name another image in `image`"
    with_image = (catalog.find(name) for each in topology.training if not each.image for name in each.types)
    images = {kind.image for kind in with_image if kind.image}
    for image in (catalog.catalog().images[name] for name in sorted(images)):
        yield f"training: AWS's support for its machine image with PyTorch {image.torch}", image.support_ends, advice
    if topology.managed and not topology.managed.image:
        yield f"managed: AWS's support for its image {managed_spec.TAG}", managed_spec.TAG_SUPPORT_ENDS, advice


def newest_release() -> str:
    return max(_SUPPORT_ENDS, key=_version)


def support_ends(release: str) -> datetime.date | None:
    """Return the day on which AWS's support for an EMR release ends, or None if the release is newer than the known
    releases.

    For a release that is not listed, return the day of the next listed release, because the support ends no later.
    """
    later = [each for each in _SUPPORT_ENDS if _version(each) >= _version(release)]
    return _SUPPORT_ENDS[min(later, key=_version)] if later else None


def _version(release: str) -> tuple[int, ...]:
    """Return a sort key that places 7.10.0 after 7.9.0."""
    return tuple(map(int, release.removeprefix("emr-").split(".")))


def limit_without_prices(topology: Topology) -> Iterator[str]:
    """Yield each limit in dollars that Shoal cannot enforce because an item has no price."""
    if not (unknown := cost.unknown(topology)):
        return
    for field, limit in (("guard, budget", topology.guard.budget), ("max_dollars", topology.max_dollars)):
        if limit is not None:
            yield (
                f"{field}: Shoal cannot enforce ${limit:.2f} without the prices of {', '.join(unknown)}; remove the "
                f"field, or download prices with `make prices REGION={topology.region}`."
            )


def budget_below_an_hour(topology: Topology) -> Iterator[str]:
    """Yield a problem if the guard's budget is spent within the first hour."""
    budget, hours, hourly = topology.guard.budget, topology.guard.max_hours, cost.hourly(topology)
    if budget is not None and budget < hourly:
        yield (
            f"guard, budget: ${budget:.2f} is less than one hour with everything running, ${hourly:.2f}; write at "
            f"least {math.ceil(hours * hourly)} for the {hours} hours of guard, max_hours."
        )


def run_below_its_start(topology: Topology) -> Iterator[str]:
    """Yield a problem if `max_dollars` is less than the cost of starting and stopping a run's nodes."""
    most, hourly = topology.max_dollars, cost.known(cost.hourly_of_run, topology)
    if most is not None and hourly and most < (least := hourly * _SHORTEST_RUN_MINUTES / 60):
        yield (
            f"max_dollars: ${most:.2f} is less than ${least:.2f}, the cost of the {_SHORTEST_RUN_MINUTES} minutes in "
            f"which a run's nodes start and stop; write at least {math.ceil(hourly)} for an hour."
        )


_RULES: Sequence[tuple[Level, Callable[[Topology], Iterator[str]]]] = (
    ("error", retired_type),
    ("error", limit_without_prices),
    ("error", budget_below_an_hour),
    ("error", run_below_its_start),
    ("warning", support_ending),
)


def offline(topology: Topology) -> list[Finding]:
    """Return the findings that need only the topology and no AWS account, errors first."""
    return [
        Finding(level=level, rule=rule.__name__, sentence=sentence)
        for level, rule in _RULES
        for sentence in rule(topology)
    ]
