"""Decides when a checkpoint is due, and writes it. The first rank writes checkpoints while the other ranks continue.

The first rank must not fail alone, because the other ranks would wait for it forever. So it only reports a failed
write.
"""

import time
from collections.abc import Callable
from typing import Any

from common.errors import TrainingError
from trainer.clock import Activity, Clock
from trainer.output import checkpoint
from trainer.output.lines import Checkpoint
from trainer.output.reporter import Reporter
from trainer.output.run_files import CHECKPOINTS
from trainer.output.throughput import Throughput

_CHECKPOINT_SECONDS = (15.0, 300.0)
_WRITING_SHARE = 0.01
_EPOCH_CHECKPOINT_SECONDS = 10.0
"""Age of the latest checkpoint, in seconds, above which a new checkpoint is written at the end of an epoch."""


def seconds_between_checkpoints(minutes: float, writing: float) -> float:
    """Return the seconds between two checkpoints.

    `minutes`: the value of `--checkpoint-minutes`. `writing`: the seconds that writing a checkpoint takes.
    """
    least, most = _CHECKPOINT_SECONDS
    return 60 * minutes or min(max(writing / _WRITING_SHARE, least), most)


class Checkpointer:
    """Writes checkpoints, and keeps track of the latest checkpoint."""

    def __init__(
        self,
        minutes: float,
        state: Callable[[], dict[str, Any]],
        reporter: Reporter,
        clock: Clock,
        throughput: Throughput,
        steps: int | None,
    ) -> None:
        """`minutes`: the value of `--checkpoint-minutes`. `state` returns the state to save. `steps`: those before the
        checkpoint that was resumed, or None.
        """
        self._folder, self._minutes, self._writing = reporter.output / CHECKPOINTS, minutes, 0.0
        self._state, self._reporter, self._clock, self._throughput = state, reporter, clock, throughput
        self.steps = steps
        """Number of steps before the latest checkpoint; None if there is no checkpoint."""
        self._since = time.monotonic()
        self._written: int | None = None

    def is_due(self, *, epoch_ends: bool) -> bool:
        """Return whether a checkpoint is due after this step.

        At the end of an epoch a checkpoint is due sooner, because the following evaluation can be long, and the machine
        could fail during the evaluation.
        """
        seconds = seconds_between_checkpoints(self._minutes, self._writing)
        seconds = min(seconds, _EPOCH_CHECKPOINT_SECONDS) if epoch_ends else seconds
        return time.monotonic() - self._since > seconds

    def resume_advice(self) -> str:
        """Return the rest of a sentence about a failed run: the step from which it can continue, if any."""
        return "" if self.steps is None else f", and continue from step {self.steps} with --resume"

    def invalidate(self) -> None:
        """Let the next call of `save` write a checkpoint, even if no step was taken since the latest checkpoint."""
        self._written = None

    def save(self, steps: int, *, awaited: bool) -> bool:
        """Write a checkpoint after `steps` steps, if this is the first rank and the checkpoint does not exist yet.

        Returns whether this call wrote the checkpoint. Another folder at the path of the output gets no checkpoint.

        `awaited`: the other ranks wait for this rank in the next step.
        """
        start, before = time.monotonic(), self.steps
        self._since, self.steps = start, steps
        if not self._reporter.first or steps == self._written or self._reporter.output_missing:
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
                self._reporter.write(
                    Checkpoint(step=steps, file=f"{CHECKPOINTS}/{path.name}", seconds=round(self._writing, 3))
                )
        if awaited:
            self._throughput.awaited += time.monotonic() - start
        return self._written == steps
