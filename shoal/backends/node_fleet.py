"""GPU nodes of a deployment as one command uses them: their start, their end, and their cost."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from common.errors import ShoalError
from infra import catalog, cost
from infra.gpu_nodes import START_SECONDS, group_nodes
from infra.topology_error import TopologyError
from shoal.aws import fleet
from shoal.aws.deployment import Deployment
from shoal.aws.fleet import GpuGroup, GpuNode, of_role
from shoal.aws.retry import retrying
from shoal.aws.scale_up import LONGEST_READY_SECONDS, running_nodes, scale_up
from shoal.aws.scaling_group import scaling_groups
from shoal.backends.agents import LONGEST_STOP_SECONDS, RESUME_HINT
from shoal.backends.deployment_runs import needs_prices, why_guard_stopped
from shoal.runs.backend import Hardware
from shoal.runs.outlook import Spending


class NodeFleet:
    """GPU nodes of a deployment."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._nodes: Sequence[GpuNode] = ()
        self._spending: Spending | None = None
        self.is_used = False
        """True if this command has started to scale up the nodes, or uses nodes that run."""
        self._seen = time.monotonic()
        """Monotonic time at which a node was last seen running."""

    def groups(self, *, readers: bool = False) -> list[GpuGroup]:
        """Return the groups that train and, with `readers`, the groups that read."""
        return retrying(partial(fleet.groups, self._deployment, readers=readers))

    @cached_property
    def all_groups(self) -> list[GpuGroup]:
        """All groups, as they were when this command read them first."""
        return self.groups(readers=True)

    @property
    def is_wanted(self) -> bool:
        """True if nodes that train are running or will start."""
        return any(group.desired for group in self.groups())

    def count_cost(self, since: datetime) -> None:
        """Count the cost of nodes from a time on."""
        if self._spending is None:
            self._spending = Spending(region=str(self._deployment.session.region_name), since=since)

    @property
    def spending(self) -> Spending:
        self.count_cost(datetime.now(UTC))
        assert self._spending is not None
        return self._spending

    def start(self, *, readers: bool, are_running: bool) -> list[str]:
        """Start the nodes and, with `readers`, the reader nodes, unless they run. Return their instance IDs."""
        self.is_used = True
        _ = self.all_groups  # before nodes start, because AWS may not answer later
        if are_running:
            self._nodes = running_nodes(self._deployment, [each.name for each in self.groups(readers=readers)])
        else:
            self._nodes = scale_up(self._deployment, readers=readers)
        self.spending.see(self._nodes)
        self._seen = time.monotonic()
        return [each.instance_id for each in self._nodes]

    def scale_to_zero(self, unless: Callable[[], bool]) -> None:
        """Scale all groups to zero, unless `unless` returns True. Raises the same errors as `fleet.scale_to_zero`."""
        fleet.scale_to_zero(self._deployment, self.all_groups, unless=unless)

    def require_running(self) -> None:
        """Raise ShoalError if no node is left, because otherwise the command would wait forever."""
        name, running = self._deployment.name, retrying(partial(fleet.nodes, self._deployment))
        self.spending.see(running)
        if running:
            self._seen = time.monotonic()
        elif not self.is_wanted:
            if why := why_guard_stopped(self._deployment):
                raise ShoalError(f"the guard stopped the nodes of '{name}', because {why}")
            raise ShoalError(f"somebody stopped the nodes of '{name}'{RESUME_HINT}")
        elif time.monotonic() - self._seen > LONGEST_READY_SECONDS:
            raise ShoalError(f"no node of '{name}' is left, and AWS does not start new nodes{RESUME_HINT}")

    @property
    def machines(self) -> Mapping[str, list[dict[str, Any]]]:
        """Nodes that this command started, as fields of a summary: `nodes` and `readers`."""
        return {
            "nodes": [_fields(node) for node in of_role(self._nodes, "train")],
            "readers": [_fields(node) for node in of_role(self._nodes, "read")],
        }

    def hardware(self, *, readers: bool) -> Hardware:
        """Return the nodes that `start` would start. Raises ShoalError if the deployment has no nodes."""
        groups = scaling_groups(self._deployment, readers=readers)
        group_types = [(each.node_group, each.instance_types) for each in groups]
        nodes = [node for group, types in group_types for node in group_nodes(types, group.size, group.gpus, group.efa)]
        try:
            prices = catalog.prices(str(self._deployment.session.region_name))
            hourly = sum(cost.training_node(node.instance_type, prices) for node in nodes)
        except TopologyError:
            hourly = None
        return Hardware(nodes=nodes, hourly=hourly, shares_files=self._deployment.share is not None)

    def require_paid(self, max_dollars: float | None, *, readers: bool) -> None:
        """Raise ShoalError if starting the nodes alone would exhaust the cost limit."""
        if max_dollars is None:
            return
        if (hourly := self.hardware(readers=readers).hourly) is None:
            raise ShoalError(needs_prices(self._deployment))
        if (starts := START_SECONDS / 3600 * hourly) >= max_dollars:
            raise ShoalError(
                f"{self._deployment.limit_of(max_dollars)}, but the start of the nodes alone costs about "
                f"${starts:.2f}; set a higher --max-dollars"
            )

    def stop_time(self, max_dollars: float | None) -> float | None:
        """Return the Unix time at which the ranks must stop so that the cost limit also covers their stop.

        Returns None if there is no cost limit. Raises ShoalError if the limit leaves no time for training.
        """
        if max_dollars is None:
            return None
        spent, hourly = self.spending.so_far(), self.spending.hourly()
        if spent is None or not hourly:
            raise ShoalError(needs_prices(self._deployment))
        seconds = (max_dollars - spent) / hourly * 3600 - LONGEST_STOP_SECONDS
        if seconds <= 0:
            raise ShoalError(
                f"{self._deployment.limit_of(max_dollars)}, but the start of the nodes cost ${spent:.2f}, and the "
                f"nodes cost ${hourly:.2f} per hour; set a higher --max-dollars"
            )
        return time.time() + seconds


def _fields(node: GpuNode) -> dict[str, Any]:
    return {**vars(node), "launched": node.launched.isoformat()}
