"""Synchronous training: all ranks take each step together.

Each step takes a global batch (order.py) and splits it over the ranks (balancers.py). Each rank computes the gradients
of its rows (gradients.py), one all-reduce sums them (exchange.py), and the optimiser updates the weights
(optimiser.py). All joint decisions (how to split, when to stop or to save) depend only on the result of the all-reduce.
A rank must not base them on local information such as its clock, because the other ranks would then wait for it
forever.
"""

from collections.abc import Callable, Sequence

from common.display import plural
from common.errors import TrainingError
from trainer.clock import ORDER, UPDATE
from trainer.distributed import failures
from trainer.distributed.exchange import StepReport
from trainer.rank_errors import SAME_SPLIT_ADVICE
from trainer.stepper import Stepper


class SynchronousStepper(Stepper):
    """Stepper of this rank. All ranks take each step together, and each computes a part of the global batch."""

    def take_steps(self) -> None:
        with failures.note_position(f"at step {self.state.steps_done + 1}"):
            self._train_step()

    def finish_steps(self) -> None:
        self._handle_report(self.exchange.drain())

    def _train_step(self) -> None:
        """Take one step: compute this rank's gradients, sum them over the ranks, and update the weights."""
        state, ranks, compute, timer = self.state, self.ranks, self.compute, self.timer
        task, order, progress, step = state.task, state.order, state.progress, state.steps_done
        size = order.size(progress.step)
        split = self.balancer.split(size)
        timer.begin(int(split[ranks.rank]))
        rows = order.batch(progress.epoch, progress.step)  # (global batch,)
        own = rows[task.share(rows, split, ranks.rank)]  # (share,)
        touched = task.touched_rows(rows) if ranks.world_size > 1 and task.tables else None
        state.optimiser.clear()
        timer.end_phase(ORDER)
        rate = task.step_rate(self.config.optimisation, step, state.steps, order.size(0))
        loss = compute(own, size, step)
        report = self.exchange.reduce(
            step=step,
            size=size,
            touched=touched,
            table_gradients=compute.take_table_gradients(),
            loss=loss,
            rows=len(own),
            piece=compute.piece_rows,
            stop=self.stop_requested(),
            save=ranks.is_first and self.checkpointer.is_due(epoch_ends=progress.step + 1 == order.steps),
        )
        state.optimiser.step(rate)
        timer.end_phase(UPDATE)
        self.throughput.own_rows += len(own)
        progress.step += 1
        progress.rows_seen += size
        self.reporter.advance(size)
        self._handle_report(report)

    def _handle_report(self, report: StepReport | None) -> None:
        """Apply the report of a step: update the progress, the balancer and the record.

        All ranks must call this method after the same step. Otherwise they would split the next step differently.

        Raises TrainingError on all ranks if training diverged.
        """
        if report is None:
            return
        state = self.state
        self.require_finite("loss", report.loss, report.step)
        self.require_finite("gradient norm", report.norm, report.step)
        _require_complete(report, self.reporter.names, self.checkpointer.resume_advice)
        state.progress.loss_sum += report.loss * report.size
        self.balancer.observe(report.rows, report.seconds)
        self.throughput.add(report)
        state.stopped = state.stopped or report.stop
        state.save_due = state.save_due or report.save
        last = state.stopped or report.step + 1 == state.steps
        self.reporter.step(report, self.throughput, epoch=state.progress.epoch + 1, last=last)


def _require_complete(report: StepReport, names: Sequence[str], resume_advice: Callable[[], str]) -> None:
    """Raise TrainingError unless the ranks computed every row of the step exactly once.

    `names` (ranks,): names for the message. `resume_advice`: returns the end of the message.
    """
    if not report.is_complete:
        computed = report.computed.tolist()
        of_ranks = "; ".join(f"{name}: {rows:,}" for name, rows in zip(names, computed, strict=True))
        raise TrainingError(
            f"the ranks computed {plural(sum(computed), 'row')} at step {report.step + 1}, but its global batch "
            f"has {report.size:,} ({of_ranks}): {SAME_SPLIT_ADVICE}" + resume_advice()
        )
