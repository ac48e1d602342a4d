"""A program for ranks: the trainer, by a clock that shows a millisecond for each row that a rank computes, and what
`--slow` adds to it. So the rates of ranks are known, however busy the machine is."""

import os

from tests.played_clock import PlayedClock
from trainer import clock, rate_measurement
from trainer.__main__ import main
from trainer.computing import gradients

SECONDS_A_ROW = 1e-3


def play() -> None:
    """Have the trainer measure by such a clock in this process."""
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
