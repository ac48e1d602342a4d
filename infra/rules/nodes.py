"""Rules for nodes that depend on other nodes: spot nodes that a cluster must not lose, and the shared file system.

With EFS, the limit is the rate at which one node can read. With NFS, the limit is the rate at which the first node can
send to all other nodes.
"""

from collections.abc import Iterator

from infra import catalog
from infra.parts import NodeGroup
from infra.rules import PreflightInput, group_label

_WORD_BYTES = 2
"""Bytes that a GPU reads for each word. The rate is computed from words, because an LSTM's words per second do not
depend on the length of rows."""
_M60_WORDS = 593_000
"""Words per second of one M60, from the reference system's tables for rows with 100 words. Other GPUs are estimated
from their 32-bit TFLOPS."""
_M60 = "g3.4xlarge"
_EFS_CLIENT = 1_500 * 2**20
"""Maximum bytes per second that one node can read from EFS (EFS documentation)."""


def spot_cluster(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the primary node or the core nodes are spot nodes, because the cluster fails if it loses
    them."""
    preprocessing = plan.topology.preprocessing
    if preprocessing and preprocessing.primary.market == "spot":
        yield (
            "preprocessing, primary, market: if AWS takes back a spot primary node, the cluster is terminated and "
            "its running step fails; write on-demand, and use spot for task nodes."
        )
    if preprocessing and preprocessing.core and preprocessing.core.market == "spot":
        yield (
            "preprocessing, core, market: core nodes store HDFS data; if AWS takes back spot nodes, data can be lost "
            "and the step can fail; write on-demand, and use spot for task nodes."
        )


def no_share(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if several GPU nodes have no shared file system."""
    if plan.topology.gpu_nodes > 1 and plan.topology.share is None:
        yield (
            f"share: without a share, each of the {plan.topology.gpu_nodes} GPU nodes copies the whole dataset to "
            "its own disk; write efs or nfs."
        )


def share_too_slow(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the GPUs need rows faster than the shared file system (EFS or the node that serves NFS) can
    send them."""
    if plan.topology.share == "efs":
        for number, group in enumerate(plan.topology.training, 1):
            given = min(_EFS_CLIENT, _network(group))
            if (rate := _reading(group)) > given:
                yield (
                    f"share: a node of {group_label(number, group)} trains on about {_mb(rate)} of rows, but reads at "
                    f"most {_mb(given)} from EFS, so the first epoch is slower."
                )
    if plan.topology.share == "nfs":
        groups = sorted(
            plan.topology.trainers, key=lambda group: group.name
        )  # `shoal train` numbers its nodes in this order
        first = groups[0]
        rates = [_reading(group) for group in groups for _ in range(group.count)]
        if (rate := sum(rates[1:])) > (given := _network(first)):
            yield (
                f"share: the first group by name ({first.name}) serves NFS and sends at most {_mb(given)}, but the "
                f"other nodes train on about {_mb(rate)} of rows; write efs, or give a group with a faster network a "
                "name that sorts first."
            )


def _reading(group: NodeGroup) -> float:
    """Return an estimate of the maximum bytes per second that the GPUs in use on one node can process."""
    gpus, m60 = [gpu for name in group.types if (gpu := catalog.find(name).gpu)], catalog.find(_M60).gpu
    tflops = max((gpu.tflops for gpu in gpus), default=0.0)
    return group.gpus * tflops / m60.tflops * _M60_WORDS * _WORD_BYTES if m60 else 0.0


def _network(group: NodeGroup) -> float:
    """Return the bytes per second of one network card of a node, for the slowest of the group's types. TCP uses only
    one card."""
    return min(catalog.find(name).network for name in group.types) * 1e9 / 8


def _mb(rate: float) -> str:
    return f"{rate / 1e6:,.0f} MB/s"
