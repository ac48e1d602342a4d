"""The time in which ranks add up their gradients: bytes, bandwidth and latency of a ring (Patarasuk and Yuan 2009)."""

from dataclasses import dataclass

_LATENCY_INSIDE, _LATENCY_BETWEEN = 10e-6, 50e-6
"""Seconds of a message between GPUs of a node, and between nodes of a placement group (AWS states below 100 us)."""
_INSIDE_GB = 8.0
"""GB a second between GPUs of a node, over PCIe 3; NVLink has many times as much."""
_USED = 0.8
"""The share of a network's bandwidth that a ring of TCP connections uses."""


@dataclass(frozen=True, kw_only=True)
class Links:
    """The connections of the ranks of a run."""

    nodes: int
    ranks: int
    gbits: float
    """Gbit/s of the slowest node's network."""

    def all_reduce_seconds(self, size: float) -> float:
        """Seconds to add up `size` bytes over all n ranks: each sends and receives twice (n - 1) / n of them, in
        2 (n - 1) messages, through the slowest connection."""
        if self.ranks == 1:
            return 0.0
        parts = 2 * (self.ranks - 1)
        if self.nodes == 1:
            return parts * (size / self.ranks / (_INSIDE_GB * 1e9) + _LATENCY_INSIDE)
        return parts * (size / self.ranks / (_USED * self.gbits * 1e9 / 8) + _LATENCY_BETWEEN)
