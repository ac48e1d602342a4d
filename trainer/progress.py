"""How far a run has come: what a checkpoint holds besides the weights."""

from dataclasses import dataclass


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
    validation: dict[str, float] | None = None
    """The loss and the measures of the latest epoch on the validation rows."""

    def end_epoch(self) -> None:
        """Go on to the next one."""
        self.epoch, self.step, self.loss_sum = self.epoch + 1, 0, 0.0
