"""When checkpoints are written, and how: by the first rank, while the others continue.

The first rank must not fail alone, because the others would wait for it for ever. It reports what it cannot write.
"""

import time
from collections.abc import Callable
from typing import Any

from common.errors import TrainingError
from trainer.clock import Activity, Clock
from trainer.options.run_options import OutputOptions, seconds_between_checkpoints
from trainer.output import checkpoint
from trainer.output.reporter import Reporter
from trainer.output.run_files import CHECKPOINTS
from trainer.output.throughput import Throughput

_EPOCH_CHECKPOINT_SECONDS = 10.0
"""At the end of an epoch a new checkpoint is written if the last one is older than this."""


class Checkpointer:
    """Writes checkpoints, and knows the newest one."""

    def __init__(
        self,
        config: OutputOptions,
        state: Callable[[], dict[str, Any]],
        reporter: Reporter,
        clock: Clock,
        throughput: Throughput,
        steps: int | None,
    ) -> None:
        """`state`: returns the state to save. `steps`: the steps of the checkpoint from which the run was resumed."""
        self._folder, self._minutes, self._writing = config.output / CHECKPOINTS, config.checkpoint_minutes, 0.0
        self._state, self._reporter, self._clock, self._throughput = state, reporter, clock, throughput
        self.steps = steps
        """The steps of the newest checkpoint; None if there is none."""
        self._since = time.monotonic()
        self._written: int | None = None

    def is_due(self, *, epoch_ends: bool) -> bool:
        """Whether a checkpoint is due after this step. At the end of an epoch it is due sooner, because an evaluation
        follows, which may take long, and the machine may be lost in it."""
        seconds = seconds_between_checkpoints(self._minutes, self._writing)
        seconds = min(seconds, _EPOCH_CHECKPOINT_SECONDS) if epoch_ends else seconds
        return time.monotonic() - self._since > seconds

    def way_back(self) -> str:
        """The rest of a sentence about a run that cannot continue: from where it can, if there is a checkpoint."""
        return "" if self.steps is None else f", and continue from step {self.steps} with --resume"

    def outdate(self) -> None:
        """There is something to save that the checkpoint of the newest step lacks."""
        self._written = None

    def save(self, steps: int, *, awaited: bool) -> bool:
        """Write a checkpoint after `steps` steps of the run, if this is the first rank and has not written it yet;
        returns whether it did. `awaited`: the others wait for it in the next step."""
        start, before = time.monotonic(), self.steps
        self._since, self.steps = start, steps
        if not self._reporter.first or steps == self._written:
            return False
        with self._clock.during(Activity.CHECKPOINTS):
            try:
                path = checkpoint.save(self._folder, self._state(), steps=steps)
            except TrainingError as error:
                self._reporter.note(f"no checkpoint at step {steps}: {error}")
                self.steps = before
            else:
                self._written = steps
                self._writing = time.monotonic() - start
                self._reporter.checkpoint(steps, path, self._writing)
        if awaited:
            self._throughput.awaited += time.monotonic() - start
        return self._written == steps
