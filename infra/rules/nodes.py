"""Rules on nodes that depend on each other: spot nodes that a cluster cannot lose, and the shared folder.

EFS limits how fast one node reads. NFS is limited by how fast the first node sends to all others.
"""

from collections.abc import Iterator

from infra import catalog
from infra.parts import NodeGroup
from infra.rules import PreflightInput, group_label

_WORD_BYTES = 2
"""That a GPU reads for a word; of longer rows an LSTM trains on fewer a second, but on as many words."""
_M60_WORDS = 593_000
"""Words a second of one M60, by the reference's tables, whose rows have 100 each. Other GPUs are estimated from their
32-bit TFLOPS."""
_M60 = "g3.4xlarge"
_EFS_CLIENT = 1_500 * 2**20
"""Bytes a second that one node can read from EFS, by its documentation."""


def spot_cluster(plan: PreflightInput) -> Iterator[str]:
    """A cluster fails when it loses its primary or core nodes, and they are spot nodes."""
    preprocessing = plan.topology.preprocessing
    if preprocessing and preprocessing.primary.market == "spot":
        yield (
            "preprocessing, primary, market: when AWS takes a spot primary node back, the whole cluster and its "
            "running step end; write on-demand, and use spot for task nodes."
        )
    if preprocessing and preprocessing.core and preprocessing.core.market == "spot":
        yield (
            "preprocessing, core, market: core nodes hold HDFS; when AWS takes spot nodes back, blocks may be lost "
            "and the step may fail; write on-demand, and use spot for task nodes."
        )


def no_share(plan: PreflightInput) -> Iterator[str]:
    """Several nodes without a shared folder."""
    if plan.topology.gpu_nodes > 1 and plan.topology.share is None:
        yield (
            f"share: there is none, so each of the {plan.topology.gpu_nodes} GPU nodes copies the whole dataset to its "
            "own disk; write efs or nfs."
        )


def share_too_slow(plan: PreflightInput) -> Iterator[str]:
    """The GPUs read rows faster than EFS, or the node that serves all others, can send them."""
    if plan.topology.share == "efs":
        for number, group in enumerate(plan.topology.training, 1):
            given = min(_EFS_CLIENT, _network(group))
            if (rate := _reading(group)) > given:
                yield (
                    f"share: a node of {group_label(number, group)} trains on about {_mb(rate)} of rows, and reads "
                    f"{_mb(given)} from EFS at most; the first epoch waits for it."
                )
    if plan.topology.share == "nfs":
        groups = sorted(plan.topology.trainers, key=lambda group: group.name)  # as `shoal train` puts its nodes
        first = groups[0]
        rates = [_reading(group) for group in groups for _ in range(group.count)]
        if (rate := sum(rates[1:])) > (given := _network(first)):
            yield (
                f"share: the other nodes train on about {_mb(rate)} of rows, and the first by name ({first.name}), "
                f"which serves them, sends {_mb(given)} at most; write efs, or give a group with a faster network "
                "a name that comes first."
            )


def _reading(group: NodeGroup) -> float:
    """Bytes a second that the used GPUs of one node can process at most, estimated."""
    gpus, m60 = [gpu for name in group.types if (gpu := catalog.find(name).gpu)], catalog.find(_M60).gpu
    tflops = max((gpu.tflops for gpu in gpus), default=0.0)
    return group.gpus * tflops / m60.tflops * _M60_WORDS * _WORD_BYTES if m60 else 0.0


def _network(group: NodeGroup) -> float:
    """Bytes a second of one node's network card at least, through which TCP goes."""
    return min(catalog.find(name).network for name in group.types) * 1e9 / 8


def _mb(rate: float) -> str:
    return f"{rate / 1e6:,.0f} MB/s"
