"""Ranks that emulate the speed of GPUs, to see on few cores how many of them would share the work.

Such a rank sleeps as long as a GPU of its rate would take to compute its rows. All else is real: the order, the
balancer, the bytes that ranks send each other, the optimiser, the record. Its gradients are zero, so nothing is learnt,
and its loss, 0, says nothing.
"""

import time

import torch
from torch import Tensor, nn

from trainer.clock import BACKWARD, StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.order import IntArray

NOTE = "the ranks emulate GPU speed (--sleep): nothing is learnt, the loss of a step is 0, and no model is saved"
"""The message to the user of such a run."""

_EARLY = 0.0001
"""The kernel wakes sleepers late by less than this, so the rest of the time is spent looking at the clock."""


class SleepingComputer(GradientComputer):
    """Takes as long for a share as a GPU of `rate` rows a second would, and contributes zeros.

    `compute`: what would compute on this rank. `timer` gets the phases.
    """

    def __init__(self, compute: GradientComputer, *, rate: float, timer: StepTimer) -> None:
        super().__init__(
            compute.model,
            _not_computed,
            rows=compute.rows,
            sparse_tables=compute.sparse_tables,
            device=compute.device,
            timer=timer,
        )
        self._rate = rate

    def with_copied_model(self, timer: StepTimer) -> "SleepingComputer":
        return SleepingComputer(super().with_copied_model(timer), rate=self._rate, timer=timer)

    def __call__(self, numbers: IntArray, of: int, step: int, slowness: float = 1.0) -> Tensor:  # noqa: ARG002
        """Sleep for these rows (n,), `slowness` times as long as the rate says; returns 0, a scalar on the device."""
        end = time.perf_counter() + slowness * len(numbers) / self._rate
        for parameter in self.model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        sleep_until(end)
        self._timer.end_phase(BACKWARD)
        return torch.zeros((), device=self.device, dtype=next(self.model.parameters()).dtype)


def sleep_until(end: float) -> None:
    """Return at `end`, by `time.perf_counter`, or at once where that is over."""
    time.sleep(max(0.0, end - time.perf_counter() - _EARLY))
    while time.perf_counter() < end:
        pass


def _not_computed(model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:  # noqa: ARG001
    raise AssertionError("a rank that sleeps computes no loss")
