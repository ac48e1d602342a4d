"""What all ranks know of the steps behind them, and what follows from it: to go on, to stop, to save, to fail.

It is taken in at the same points by all ranks, so that they stay in agreement. The easy mistake is to act on it where
one rank is further than another: they would then split the next step differently.
"""

import numpy as np

from corpus.display import plural
from trainer.checkpoint import RunProgress
from trainer.errors import SPLIT_ALIKE, TrainingError
from trainer.exchange import Report
from trainer.keeper import Keeper
from trainer.reporter import Reporter
from trainer.sharing import Sharing
from trainer.throughput import Throughput


class Agreed:
    """Takes in the reports of steps, and hands them on."""

    def __init__(
        self,
        progress: RunProgress,
        sharing: Sharing,
        throughput: Throughput,
        reporter: Reporter,
        keeper: Keeper,
        *,
        steps: int,
        precision: str,
    ) -> None:
        """`steps`: of the whole run. `precision`: in which layers compute."""
        self._progress, self._sharing, self._throughput = progress, sharing, throughput
        self._reporter, self._keeper = reporter, keeper
        self._steps, self._precision = steps, precision
        self.stopped = False
        """Whether the run is to end here, as it was asked to."""
        self.save_due = False
        """Whether a checkpoint is to be written."""

    def take(self, report: Report | None) -> None:
        """Act on a step. Raises TrainingError, on all ranks, for one after which nothing can be learnt any more."""
        if report is None:
            return
        self.require_finite("loss", report.loss, report.step)
        self.require_finite("gradient's length", report.norm, report.step)
        self._require_whole(report)
        self._progress.loss_sum += report.loss * report.size
        self._sharing.observe(report)
        self._throughput.add(report)
        self.stopped = self.stopped or report.stop
        self.save_due = self.save_due or report.save
        last = self.stopped or report.step + 1 == self._steps
        self._reporter.step(report, self._throughput, epoch=self._progress.epoch + 1, last=last)

    def require_finite(self, what: str, value: float, step: int) -> None:
        """Raise TrainingError for a value, known after so many steps, that is no number."""
        if not np.isfinite(value):
            way = "" if self._precision == "float32" else ", or take --precision float32"
            raise TrainingError(
                f"the {what} is {value} at step {step + 1}; lower --learning-rate, or set --clip-norm{way}"
                + self._way_back()
            )

    def _require_whole(self, report: Report) -> None:
        if not report.is_whole:
            computed = report.computed.tolist()
            told = "; ".join(f"{name}: {rows:,}" for name, rows in zip(self._reporter.names, computed, strict=True))
            raise TrainingError(
                f"the ranks computed {plural(sum(computed), 'row')} at step {report.step + 1}, and not the "
                f"{report.size:,} of its global batch ({told}): {SPLIT_ALIKE}" + self._way_back()
            )

    def _way_back(self) -> str:
        return "" if self._keeper.steps is None else f", and go on from step {self._keeper.steps} with --resume"
