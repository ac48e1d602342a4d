"""How far a run has come: what a checkpoint holds besides the weights."""

from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class Progress:
    """Counts of a run, over all its sittings."""

    epoch: int = 0
    step: int = 0
    """Steps done of this epoch; all of them while the epoch waits for its evaluation."""
    rows_seen: int = 0
    seconds: float = 0.0
    """Of training."""
    loss_sum: float = 0.0
    """Of this epoch, over its rows so far."""
    best: dict[str, Any] | None = None
    """The epoch with the best balanced accuracy on the validation rows so far (of equal ones, that with the smaller
    loss): `epoch` (from 1), `validation`, `state`."""

    def is_best(self, results: dict[str, Any]) -> bool:
        """Whether an epoch with these results (`validation`) is the best so far."""
        return self.best is None or _merit(results) > _merit(self.best)

    def end_epoch(self) -> None:
        """Go on to the next one."""
        self.epoch, self.step, self.loss_sum = self.epoch + 1, 0, 0.0


def _merit(results: dict[str, Any]) -> tuple[float, float]:
    return results["validation"]["balanced_accuracy"], -results["validation"]["loss"]
