"""How many bytes a rank sends to the others for its steps: gradients or rows of tables, and the ids that go with them.

What is sent between steps is not counted: the parameters at the start, and whole tables at a checkpoint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(kw_only=True)
class Traffic:
    """That of a rank since its start."""

    bytes: float = 0.0
    steps: int = 0
    """Exchanges, or steps that it took by itself."""

    def add_sum(self, size: int, ranks: int) -> None:
        """Add a sum of `size` bytes over so many ranks, as a ring takes it: all but a rank's own part goes round
        twice."""
        self.bytes += 2 * size * (ranks - 1) / ranks


def bytes_a_step(of_ranks: Sequence[Mapping[str, float]], *, local_steps: int) -> float | None:
    """The bytes that a rank sends for a step of its own, by the fields of the ranks' Traffic; None before the first
    step. `local_steps`: how many of a rank's own steps are between two exchanges, at least 1."""
    steps = sum(each["steps"] for each in of_ranks) * local_steps
    return sum(each["bytes"] for each in of_ranks) / steps if steps else None
