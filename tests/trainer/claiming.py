"""A program for ranks: the trainer, whose ranks claim the last fifth of every step, in pieces of two rows at least."""

import os

import numpy as np

from trainer.__main__ import main
from trainer.balancing.claims import ClaimPlanner, StepPlan
from trainer.balancing.split import IntArray, proportional_split


def always_claim() -> None:
    """Have ranks claim from the first step on, whatever it costs, and however fast each of them was measured to be: on
    a busy machine the measured speeds may differ so much that the slower rank would claim nothing."""
    begin, plan = ClaimPlanner.__init__, ClaimPlanner.plan

    def made(self: ClaimPlanner, *, enabled: bool = True) -> None:
        begin(self, enabled=enabled)
        self._pool, self._smallest = 0.2, 2.0

    def of_all_ranks(self: ClaimPlanner, split: IntArray) -> StepPlan:
        return plan(self, proportional_split(int(split.sum()), np.maximum(split, split.max() * 0.6)))

    ClaimPlanner.__init__, ClaimPlanner.plan = made, of_all_ranks
    ClaimPlanner._adjust = lambda *_, **__: None


if __name__ == "__main__":
    always_claim()
    status = main()
    if status:
        os._exit(status)
