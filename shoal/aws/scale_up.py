"""Scaling of a deployment's node groups: start the nodes, wait until they are ready, and scale to zero at the end.

All groups run in one zone. If the zone has no capacity, all groups move to the next zone together. Every wait has a
time limit. Without a limit, Shoal would wait forever for a node that never reports, while the other nodes cost money.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from common import names
from common.errors import ShoalError
from common.progress import reporter
from corpus.reading.s3 import S3Path, read_text
from infra import catalog
from infra.topology_error import TopologyError
from shoal.aws import boot_report, capacity, fleet, scaling_group
from shoal.aws.capacity import GroupState
from shoal.aws.deployment import Deployment
from shoal.aws.fleet import GpuNode
from shoal.aws.retry import retrying
from shoal.aws.scaling_group import ScalingGroup

READY_SECONDS = 900
_METAL_SECONDS = 1200
"""Additional seconds until a running bare-metal instance has a network, because its server first verifies all hardware
(EC2 user guide, release notes of instance types, read on 2026-11-29)."""
LONGEST_READY_SECONDS = READY_SECONDS + _METAL_SECONDS
_PAUSE_SECONDS = 1.0


def scale_up(deployment: Deployment, *, readers: bool = False) -> list[GpuNode]:
    """Start all training nodes and, with `readers`, all readers. Return the nodes once they are ready, training nodes
    first. Nodes that already run stay.

    Missing spot instances are replaced with on-demand instances, and a zone without capacity is replaced with the next
    zone. The caller must call `fleet.scale_to_zero` at the end, also after an error.

    Raises ShoalError if no zone is left, AWS refuses nodes because of a quota, a node fails to boot, or not all nodes
    are ready in time. For a failed boot, the message contains the last line of the boot log.
    """
    return _ScaleUp(deployment, readers=readers).run()


@dataclass(frozen=True, kw_only=True)
class Zone:
    """Availability Zone in which nodes can run, with the id of the subnet there."""

    name: str
    subnet: str


class _ScaleUp:
    def __init__(self, deployment: Deployment, *, readers: bool) -> None:
        self._deployment = deployment
        self._s3 = deployment.session.client("s3")
        self._groups = scaling_group.scaling_groups(deployment, readers=readers)
        self._size = sum(group.node_group.size for group in self._groups)
        zone, *self._remaining_zones = zones(deployment, self._groups)
        self._tried_zones = [zone]
        self._ready: set[str] = set()
        self._seen_nodes: set[str] = set()
        self._seconds = ready_seconds(name for group in self._groups for name in group.instance_types)
        self._since = time.monotonic()

    def run(self) -> list[GpuNode]:
        """Request all nodes, wait until they are ready, and return them."""
        self._stage("")
        self._request_nodes()
        while True:
            running = self._running()
            if self._all_ready(running):
                return running
            self._refresh()
            states = [group.state() for group in self._groups]
            match capacity.next_action(
                states,
                seconds=time.monotonic() - self._since,
                tried=[zone.name for zone in self._tried_zones],
                zones_left=bool(self._remaining_zones),
            ):
                case capacity.TakeOnDemand(names):
                    self._take_on_demand([group for group in self._groups if group.name in names])
                case capacity.MoveZone(name):
                    self._move(name)
                case capacity.GiveUp(sentence):
                    raise ShoalError(sentence)
                case capacity.Wait():
                    self._wait(lambda: _timeout_reason(running, self._ready, self._seen_nodes, states))  # noqa: B023

    def _running(self) -> list[GpuNode]:
        """Return the running nodes of the groups to scale up."""
        return running_nodes(self._deployment, [group.name for group in self._groups])

    def _all_ready(self, running: Sequence[GpuNode]) -> bool:
        self._seen_nodes |= {node.instance_id for node in running}
        for node in running:
            if node.instance_id not in self._ready and is_ready(self._s3, self._deployment, node):
                self._ready.add(node.instance_id)
        ready = sum(node.instance_id in self._ready for node in running)
        reporter().at(ready)
        return ready == len(running) == self._size

    def _refresh(self) -> None:
        descriptions = scaling_group.descriptions_by_name(self._deployment)
        for group in self._groups:
            group.refresh(descriptions[group.node_group.scaling_group])

    def _request_nodes(self) -> None:
        for group in self._groups:
            group.request_nodes(self._tried_zones[-1].subnet)
        self._since = time.monotonic()

    def _take_on_demand(self, scarce: Sequence[ScalingGroup]) -> None:
        prices = [f"{group.name} on demand{_price(self._deployment, group.instance_types)}" for group in scarce]
        self._stage(f": {', '.join(prices)}, because {self._tried_zones[-1].name} has no spot capacity")
        for group in scarce:
            group.request_on_demand()
        self._since = time.monotonic()

    def _move(self, name: str) -> None:
        """Move all groups to the next zone, after their nodes are terminated. Nodes in different zones cannot train
        together."""
        full, zone = self._tried_zones[-1], self._remaining_zones.pop(0)
        self._tried_zones.append(zone)
        self._stage(f" in {zone.name}, because {full.name} has no capacity for {name}")
        for group in self._groups:
            group.scale_to_zero()
        self._since = time.monotonic()
        self._refresh()
        while not all(group.empty for group in self._groups):
            self._wait(
                lambda: f"the nodes in {full.name} were not terminated; see the activity of their groups in the console"
            )
            self._refresh()
        self._request_nodes()

    def _stage(self, how: str) -> None:
        reporter().stage(f"start nodes{how}", self._size, unit="node")

    def _wait(self, why: Any) -> None:
        """Wait one second. If the time limit is exceeded, raise ShoalError with the result of `why` as the reason."""
        if time.monotonic() - self._since > self._seconds:
            raise ShoalError(f"the nodes did not start within {self._seconds // 60} minutes: {why()}")
        time.sleep(_PAUSE_SECONDS)


def running_nodes(deployment: Deployment, groups: Collection[str]) -> list[GpuNode]:
    """Return the running nodes of these groups. Nodes of other groups can run at the same time."""
    return [node for node in retrying(partial(fleet.nodes, deployment)) if node.group in groups]


def ready_seconds(instance_types: Iterable[str]) -> int:
    """Return the time limit in seconds within which nodes of these instance types must be ready."""
    return READY_SECONDS + _METAL_SECONDS * any(".metal" in each for each in instance_types)


def zones(deployment: Deployment, groups: Sequence[ScalingGroup]) -> list[Zone]:
    """Return the zones that the groups can use. The first zone is the one where their nodes run or would start."""
    current = min(groups, key=lambda group: group.existing == 0).subnet
    tags = {names.TAG_DEPLOYMENT: deployment.name, names.TAG_NODES: "true"}
    usable = _subnets(deployment, Filters=[{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()])
    if current not in [zone.subnet for zone in usable]:  # subnets of the user's own network do not have Shoal's tag
        usable = _subnets(deployment, SubnetIds=[current])
    at = [zone.subnet for zone in usable].index(current)
    return [*usable[at:], *usable[:at]]


def _subnets(deployment: Deployment, **chosen: Any) -> list[Zone]:
    subnets = retrying(partial(deployment.session.client("ec2").describe_subnets, **chosen))["Subnets"]
    named = [Zone(name=at["AvailabilityZone"], subnet=at["SubnetId"]) for at in subnets]
    return sorted(named, key=lambda zone: zone.name)


def is_ready(s3: Any, deployment: Deployment, node: GpuNode) -> bool:
    """Return whether a node reported that it is ready. Raises ShoalError if the node reported a failure."""
    bucket = deployment.output(names.OUTPUT_DATA_BUCKET)
    place = S3Path(bucket, f"{names.NODES}{node.instance_id}.json")
    report = retrying(partial(read_text, s3, place))
    if report is None:
        return False
    fields = boot_report.parse(report)
    if fields["state"] == "ready":
        return True
    last = fields["log"].strip().splitlines()[-1:] or ["its log is empty"]
    has = f", which has Python {fields['python']}," if "python" in fields else ""
    failed = f"({node.group}){has} failed to boot: {last[0]}"
    raise ShoalError(f"the node {node.instance_id} {failed}; see {place}")


def _price(deployment: Deployment, types: Sequence[str]) -> str:
    try:
        hourly = [catalog.prices(str(deployment.session.region_name)).hourly(name) for name in types]
    except TopologyError:
        return ""
    return f" ({' to '.join(f'${price:g}' for price in sorted({min(hourly), max(hourly)}))} per hour each)"


def _timeout_reason(running: Sequence[GpuNode], ready: set[str], seen: set[str], states: Sequence[GroupState]) -> str:
    silent = [node for node in running if node.instance_id not in ready]
    ended = len(seen) - len(running)
    missing = [f"{group.size - group.existing} of '{group.name}'" for group in states if group.lacks_nodes]
    message = next((f': "{words}"' for group in states for words in group.refusals), "")
    parts = [f"{len(running) - len(silent)} of {sum(group.size for group in states)} are ready"]
    if missing:
        parts.append(f"AWS did not start {', '.join(missing)}{message}")
    if ended > 0:
        parts.append(f"{ended} terminated by themselves, and AWS replaced them")
    if silent:
        names = ", ".join(f"{node.instance_id} ({node.group})" for node in silent)
        parts.append(
            f"{names} never reported; to see the console output, run: aws ec2 get-console-output --output text "
            f"--instance-id {silent[0].instance_id}"
        )
    return "; ".join(parts)
