"""Asynchronous training: each rank takes steps without waiting for the others (`--mode async:K`).

All ranks together form a parameter server for the tables (parameter_server.py). A rank takes the next step of the epoch
from the first rank's step queue, and pulls the table rows that the step needs. The rank trains K local steps on these
rows, and pushes their changes. A faster rank takes more steps, so no balancing is needed.

The ranks make no collective decisions during a step. The step queue closes before a checkpoint, after a stop request,
and at the end of the epoch. Then every rank finishes its step, and a synchronisation gives all ranks the same tables.

Between a rank's pull and its push, other ranks push an unpredictable number of changes. Runs are therefore not
reproducible bit for bit, and a resumed run differs from an uninterrupted run. Each step of an epoch is taken exactly
once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from common.errors import TrainingError
from trainer.clock import ALL_REDUCE, ORDER
from trainer.distributed import collectives, failures, parameter_server
from trainer.distributed.exchange import StepReport
from trainer.distributed.parameter_server import FinishedStep, StepQueue
from trainer.stepper import Stepper

_STALENESS_PER_RANK = 4
"""Staleness bound per rank.

A rank can be ahead of the oldest unfinished step by at most this number times the world size.
"""
_STEPS_PER_REPORT = 4
"""Average number of steps per rank that one report combines."""


class AsynchronousStepper(Stepper):
    """Stepper of this rank. The rank takes steps without waiting for other ranks; each step is a whole global batch."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._bound = _STALENESS_PER_RANK * self.ranks.world_size
        self._unreported: list[FinishedStep] = []

    @contextmanager
    def taking_steps(self) -> Iterator[None]:
        tables = [table.detach() for table in self.task.sparse_tables]
        with parameter_server.serve_tables(self.ranks, tables) as self._server:
            self.exchange.traffic = self._server.traffic
            yield

    def take_steps(self) -> None:
        """Take steps until the epoch ends, a checkpoint is due, or a rank was asked to stop."""
        state = self.state
        ranks, queue = self.ranks, self._new_queue()
        ranks.gather(None)  # Barrier: from here on the step queue exists.
        where, error = f"at step {state.steps_done + 1}", None
        with failures.note_position(where), collectives.convert_errors(where):
            try:
                finished: FinishedStep | None = None
                while (step := self._server.take(finished, stop=self.stop_requested())) is not None:
                    finished = self._train_queued_step(step)
                    if ranks.is_first:
                        self._count(queue.take_reports())
            except TrainingError as raised:
                error = raised
                queue.close()
        ranks.gather(None)  # Barrier: all ranks have reported their last steps to the queue.
        with ranks.agreement():
            if error:
                raise error
            if ranks.is_first:
                self._count(queue.take_reports(), last=True)
        with collectives.convert_errors("between two steps"):
            self._server.gather()
        stop = any(ranks.gather(self.stop_requested()))
        vars(state.progress).update(ranks.broadcast(vars(state.progress)))
        state.stopped = state.stopped or stop
        state.save_due = state.epoch_continues or ranks.broadcast(self.checkpointer.is_due(epoch_ends=True))

    def communication(self) -> dict[str, Any]:
        """Return the traffic between ranks and the staleness of their pushes, as fields of summary.json."""
        of_ranks = self.ranks.gather(vars(self._server.staleness))
        pushes = sum(staleness["pushes"] for staleness in of_ranks)
        return {
            **super().communication(),
            "staleness": {
                "mean": sum(staleness["total"] for staleness in of_ranks) / max(1, pushes),
                "most": max(staleness["most"] for staleness in of_ranks),
                "bound": self._bound + self.ranks.world_size - 1,
            },
        }

    def _new_queue(self) -> StepQueue:
        """Return a queue of the epoch's remaining steps.

        All ranks take their steps from the queue of the first rank.
        """
        state = self.state

        def is_due(finished: int) -> bool:
            return self.stop_requested() or self.checkpointer.is_due(epoch_ends=finished == self.order.steps)

        queue = StepQueue(first=state.progress.step, last=self.order.steps, bound=self._bound, is_due=is_due)
        if self.ranks.is_first:
            self._server.take_step = queue.take
        return queue

    def _train_queued_step(self, step: int) -> FinishedStep:
        """Train one step of the epoch, and return the report of this step."""
        state, compute, timer, order, ranks = self.state, self.compute, self.timer, self.order, self.ranks.world_size
        done, size = order.steps * state.progress.epoch + step, order.size(step)
        timer.begin(size)
        rows = order.batch(state.progress.epoch, step)  # (global batch,)
        touched = self.task.touched_sparse_rows(rows, done)
        timer.end_phase(ORDER)
        versions = self._server.pull(touched)
        timer.end_phase(ALL_REDUCE)
        self.task.step_rate(self.config.optimisation, done, state.steps, order.size(0))
        loss = compute(rows, ranks * size, done) * ranks
        seconds = timer.latest_stats().seconds
        table_gradients = compute.take_table_gradients()
        self._server.push(
            [each.ids.long() for each in table_gradients], [-each.gradients for each in table_gradients], versions
        )
        timer.end_phase(ALL_REDUCE)
        self.throughput.own_rows += size
        return FinishedStep(self.ranks.rank, step, float(loss), size, seconds)

    def _count(self, finished: list[FinishedStep], *, last: bool = False) -> None:
        """Count finished steps on the first rank, and combine several steps into one report.

        A report needs steps of all ranks, but each finished step comes from a single rank.

        Steps are kept until there are enough for a report. With `last`, the remaining steps are reported at once.
        Raises TrainingError if the loss diverged.
        """
        state = self.state
        progress = state.progress
        for step in finished:
            self.require_finite("loss", step.loss, state.steps_done)
            progress.loss_sum += step.loss * step.rows
            progress.step += 1
            progress.rows_seen += step.rows
            self.reporter.advance(step.rows)
        self._unreported += finished
        ranks = self.ranks.world_size
        if len(self._unreported) >= _STEPS_PER_REPORT * ranks or (last and self._unreported):
            report = _merged_report(self._unreported, step=state.steps_done - 1, ranks=ranks)
            self._unreported = []
            self.throughput.add(report)
            ends = state.steps_done == state.steps
            self.reporter.step(report, self.throughput, epoch=progress.epoch + 1, last=ends)


def _merged_report(finished: list[FinishedStep], *, step: int, ranks: int) -> StepReport:
    """Return one report for finished steps of `ranks` ranks. `step`: the number of the latest step (from 0)."""
    rows, seconds = np.zeros(ranks, np.int64), np.zeros(ranks)
    for each in finished:
        rows[each.rank] += each.rows
        seconds[each.rank] += each.seconds
    return StepReport(
        step=step,
        size=int(rows.sum()),
        loss=sum(each.loss * each.rows for each in finished) / int(rows.sum()),
        norm=0.0,
        stop=False,
        save=False,
        rows=rows,
        seconds=seconds,
        pieces=np.zeros(ranks, np.int64),
        computed=rows,
    )
