"""State of a model in training, in a checkpoint: the model, its optimiser and its progress. Also pending decisions."""

from typing import Any

from shoal_balance import BatchOrder

from trainer.config import TrainConfig
from trainer.output import checkpoint
from trainer.output.checkpoint import Progress
from trainer.output.run_files import CHECKPOINTS
from trainer.task import LoopData, Task


class ModelState:
    """State of a run on this rank. Between two steps it is the same on all ranks, except for rounding."""

    def __init__(self, config: TrainConfig, task: Task[Any], data: LoopData, order: BatchOrder) -> None:
        """Create the state before the first step, with the model of `task` and a new optimiser."""
        self._config, self._digest = config, data.digest
        self.task, self.order = task, order
        self.optimiser = task.optimiser(config.optimisation)
        self.progress = Progress()
        self.epochs = config.optimisation.epochs_for(order.steps)
        self.steps = self.epochs * order.steps
        """Number of steps in all epochs."""
        self.stopped = False
        """True if the run ends early because it was asked to stop."""
        self.save_due = False
        """True if a checkpoint must be written after this step."""

    @property
    def steps_done(self) -> int:
        """Number of steps that the whole run has taken so far."""
        return self.order.steps * self.progress.epoch + self.progress.step

    @property
    def epoch_continues(self) -> bool:
        """True if this epoch has more steps to take."""
        return self.progress.step < self.order.steps and not self.stopped

    def state_dict(self, seconds: float) -> dict[str, Any]:
        """Return the whole state that is needed to resume the run (checkpoint.py).

        `seconds`: the seconds of training since the first start.
        """
        return {
            "format": checkpoint.FORMAT,
            "config": {**self._config.plain(), "epochs": self.epochs},
            "digest": self._digest,
            "global_batch": self.order.global_batch,
            "progress": {**vars(self.progress), "seconds": seconds},
            "model": self.task.model.state_dict(),
            "optimiser": self.optimiser.state(),
            "task": {} if self.task.stream is None else self.task.stream.state(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore the run from a result of `state_dict`. Raises TrainingError if it belongs to a different model."""
        self.progress = checkpoint.restore(
            saved, self.task.model, self.optimiser, self.task.stream, where=self._config.output / CHECKPOINTS
        )
