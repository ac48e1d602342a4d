"""A program for ranks: the trainer with a simulated clock, so that the rates of ranks are known on a busy machine.

The clock advances by a millisecond for each row that a rank computes, plus the delay of `--slow`.
"""

import os

from tests.played_clock import PlayedClock
from trainer import clock, rate_measurement
from trainer.__main__ import main
from trainer.computing import gradients

SECONDS_A_ROW = 1e-3


def play() -> None:
    """Patch the time measurement in this process."""
    played, compute = PlayedClock(), gradients.GradientComputer._in_pieces

    def computed(self, numbers, *rest):
        played.now += SECONDS_A_ROW * len(numbers)
        return compute(self, numbers, *rest)

    gradients.GradientComputer._in_pieces = computed
    clock.time = gradients.time = rate_measurement.time = played


if __name__ == "__main__":
    play()
    status = main()
    if status:
        os._exit(status)
