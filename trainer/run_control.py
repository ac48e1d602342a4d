"""What follows from the report of a step, the same on all ranks: go on, stop, save a checkpoint, or fail.

All ranks must handle a report at the same point. Otherwise they would split the next step differently.
"""

import numpy as np

from corpus.display import plural
from trainer.balancing.balancers import Balancer
from trainer.distributed.exchange import StepReport
from trainer.errors import SAME_SPLIT_ADVICE, TrainingError
from trainer.output.checkpoint import RunProgress
from trainer.output.checkpoint_schedule import Checkpointer
from trainer.output.reporter import Reporter
from trainer.output.throughput import Throughput


class RunControl:
    """Handles the reports of steps, and passes them on."""

    def __init__(
        self,
        progress: RunProgress,
        balancer: Balancer,
        throughput: Throughput,
        reporter: Reporter,
        checkpointer: Checkpointer,
        *,
        steps: int,
        precision: str,
    ) -> None:
        """`steps`: of the whole run. `precision`: that of the layers."""
        self._progress, self._balancer, self._throughput = progress, balancer, throughput
        self._reporter, self._checkpointer = reporter, checkpointer
        self._steps, self._precision = steps, precision
        self.stopped = False
        """Whether the run ends here, because it was asked to stop."""
        self.save_due = False
        """Whether a checkpoint has to be written."""

    def handle(self, report: StepReport | None) -> None:
        """Handle the report of a step. Raises TrainingError, on all ranks, if nothing can be learnt any more."""
        if report is None:
            return
        self.require_finite("loss", report.loss, report.step)
        self.require_finite("gradient's length", report.norm, report.step)
        self._require_whole(report)
        self._progress.loss_sum += report.loss * report.size
        self._balancer.observe(report.rows, report.seconds)
        self._throughput.add(report)
        self.stopped = self.stopped or report.stop
        self.save_due = self.save_due or report.save
        last = self.stopped or report.step + 1 == self._steps
        self._reporter.step(report, self._throughput, epoch=self._progress.epoch + 1, last=last)

    def require_finite(self, what: str, value: float, step: int) -> None:
        """Raise TrainingError if a `value`, known after `step` steps, is infinite or NaN."""
        if not np.isfinite(value):
            way = "" if self._precision == "float32" else ", or take --precision float32"
            raise TrainingError(
                f"the {what} is {value} at step {step + 1}; lower --learning-rate, or set --clip-norm{way}"
                + self._way_back()
            )

    def _require_whole(self, report: StepReport) -> None:
        if not report.is_complete:
            computed = report.computed.tolist()
            rows_by_rank = "; ".join(
                f"{name}: {rows:,}" for name, rows in zip(self._reporter.names, computed, strict=True)
            )
            raise TrainingError(
                f"the ranks computed {plural(sum(computed), 'row')} at step {report.step + 1}, and not the "
                f"{report.size:,} of its global batch ({rows_by_rank}): {SAME_SPLIT_ADVICE}" + self._way_back()
            )

    def _way_back(self) -> str:
        steps = self._checkpointer.steps
        return "" if steps is None else f", and go on from step {steps} with --resume"
