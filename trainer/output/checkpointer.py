"""When a run is kept, and how: its checkpoints, which the first rank writes while the others go on.

The easy mistake is to fail alone: the others would wait for the first rank for ever. What it cannot write it says.
"""

import time
from collections.abc import Callable
from typing import Any

from trainer.clock import Activity, Clock
from trainer.config import OutputOptions
from trainer.errors import TrainingError
from trainer.output import checkpoint
from trainer.output.files import CHECKPOINTS
from trainer.output.reporter import Reporter
from trainer.output.throughput import Throughput

_EPOCH_CHECKPOINT_SECONDS = 10.0
"""A checkpoint that is older than this is followed by another one at an epoch's end."""


class Checkpointer:
    """Knows the newest checkpoint, and writes the next."""

    def __init__(
        self,
        config: OutputOptions,
        state: Callable[[], dict[str, Any]],
        reporter: Reporter,
        clock: Clock,
        throughput: Throughput,
        steps: int | None,
    ) -> None:
        """`state`: what a checkpoint is to hold, as it is then. `steps`: those of the checkpoint from which the run
        goes on."""
        self._folder, self._seconds = config.output / CHECKPOINTS, 60 * config.checkpoint_minutes
        self._state, self._reporter, self._clock, self._throughput = state, reporter, clock, throughput
        self.steps = steps
        """Of the newest checkpoint; None where there is none."""
        self._since = time.monotonic()

    def is_due(self, *, epoch_ends: bool) -> bool:
        """Whether this step is to be kept: the last one of an epoch sooner than others, as an evaluation, which may
        take long, is about to come, and the machine may be lost."""
        seconds = min(self._seconds, _EPOCH_CHECKPOINT_SECONDS) if epoch_ends else self._seconds
        return time.monotonic() - self._since > seconds

    def save(self, steps: int, *, awaited: bool) -> None:
        """Write a checkpoint after so many steps of the run, if this is the first rank; `awaited`: the others wait for
        that in the next step."""
        start, before = time.monotonic(), self.steps
        self._since, self.steps = start, steps
        if not self._reporter.first:
            return
        with self._clock.during(Activity.CHECKPOINTS):
            try:
                path = checkpoint.save(self._folder, self._state(), steps=steps)
            except TrainingError as error:
                self._reporter.note(f"no checkpoint at step {steps}: {error}")
                self.steps = before
            else:
                self._reporter.checkpoint(steps, path, time.monotonic() - start)
        if awaited:
            self._throughput.add_wait(time.monotonic() - start)
