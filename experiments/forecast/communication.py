"""The time in which ranks add up their gradients: bytes, bandwidth, and the latency of so many messages.

NCCL sends in a ring (Patarasuk and Yuan 2009), or, where messages are small and nodes are many, in a tree, and chooses
by itself; so the shorter of both times counts. A ring alone would make hundreds of GPUs look as if they waited for
hundreds of messages.
"""

import math
from dataclasses import dataclass

_LATENCY_INSIDE, _LATENCY_BETWEEN = 10e-6, 50e-6
"""Seconds of a message between GPUs of a node, and between nodes of a placement group (AWS states below 100 us)."""
_INSIDE_GB = 8.0
"""GB a second between GPUs of a node, over PCIe 3; NVLink has many times as much."""
_USED = 0.8
"""The share of a network's bandwidth that TCP connections use."""

WHOLE_BYTES = 4.1e6
"""Of all gradients of the reference's model: most are the word table's, of 10,000 words."""
_TOUCHED_BYTES, _TOUCHED_BATCH = 2.0e6, 512
"""Of those that a batch of so many rows touches, as `python -m benchmarks link` has measured them."""


def gradient_bytes(global_batch: int) -> float:
    """Bytes of the gradients of the reference's model that a rank sends in a step, in 32 bits: of the word table only
    the rows that the batch touches, whose number grows with the root of its rows."""
    return min(WHOLE_BYTES, _TOUCHED_BYTES * math.sqrt(global_batch / _TOUCHED_BATCH))


@dataclass(frozen=True, kw_only=True)
class Links:
    """The connections of the ranks of a run."""

    nodes: int
    ranks: int
    gbits: float
    """Gbit/s of the slowest node's network."""

    @property
    def latency(self) -> float:
        """Seconds of a message without bytes."""
        return _LATENCY_INSIDE if self.nodes == 1 else _LATENCY_BETWEEN

    def seconds_to_send(self, size: float) -> float:
        """Seconds in which a rank sends `size` bytes to others, while all of its node's ranks do so."""
        if self.nodes == 1:
            return size / (_INSIDE_GB * 1e9)
        return size * math.ceil(self.ranks / self.nodes) / (_USED * self.gbits * 1e9 / 8)

    def all_reduce_seconds(self, size: float) -> float:
        """Seconds to add up `size` bytes over all ranks, through the slowest connection."""
        if self.ranks == 1:
            return 0.0
        parts = 2 * (self.ranks - 1)
        if self.nodes == 1:
            return parts * (size / self.ranks / (_INSIDE_GB * 1e9) + _LATENCY_INSIDE)
        bandwidth = _USED * self.gbits * 1e9 / 8
        ring = parts * (size / self.ranks / bandwidth + _LATENCY_BETWEEN)
        inside = 2 * (math.ceil(self.ranks / self.nodes) - 1)
        tree = 2 * size / bandwidth + 2 * math.ceil(math.log2(self.nodes)) * _LATENCY_BETWEEN + inside * _LATENCY_INSIDE
        return min(ring, tree)
