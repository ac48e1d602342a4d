"""GPU nodes of a topology: their instance types, and the number of GPUs that train."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from infra import catalog
from infra.topology import Topology

START_SECONDS = 300.0
"""Expected seconds from the request for GPU nodes to the first command on them. Assumed."""


class PlannedNode(NamedTuple):
    instance_type: str
    gpus: int
    """Number of GPUs in use. Each GPU has one rank."""
    efa: bool = False
    """Whether the node has EFA interfaces. EFA uses all network cards of the node."""


def nodes_of(topology: Topology) -> tuple[PlannedNode, ...]:
    """Return a topology's GPU nodes when all node groups are scaled up. Without node groups, return the instances of
    its SageMaker training job."""
    if (jobs := topology.managed) and not topology.training:
        gpu = catalog.find(jobs.ec2_type).gpu
        return (PlannedNode(jobs.ec2_type, gpu.count if gpu else 1),) * jobs.count
    return tuple(
        node for group in topology.trainers for node in group_nodes(group.types, group.count, group.gpus, group.efa)
    )


def group_nodes(types: Sequence[str], count: int, gpus: int, efa: bool) -> list[PlannedNode]:
    """Return the nodes of a group, which alternate over `types`. This is assumed, because AWS chooses the types when
    the nodes start."""
    return [PlannedNode(kind, gpus, efa) for kind in itertools.islice(itertools.cycle(types), count)]
