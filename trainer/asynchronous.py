"""Ranks that take steps each by itself, without waiting for each other (--mode async:K).

The tables are those of a parameter server, whose rows are kept by all ranks (parameter_server.py). A rank takes the
next step of the epoch from the first rank's dealer (dealer.py), pulls the rows that it needs, makes K steps of its own
on them, and pushes how far it has moved them. A faster rank takes more steps, so nothing has to be balanced.

Nothing is decided in a step by all ranks together. The dealer ends the dealing for a checkpoint, a stop, or the end of
the epoch; then every rank finishes its step, all meet, and have the same tables. What other ranks pushed between a
rank's pull and its push is not known beforehand: a run is not repeated to the last digit, and an interrupted one goes
on from a checkpoint with other numbers than it would have had. Each step of an epoch is taken exactly once.
"""

from typing import Any

import numpy as np

from trainer.clock import ALL_REDUCE, ORDER
from trainer.distributed import collectives, failures
from trainer.distributed.channel import Connections
from trainer.distributed.dealer import Dealer, Finished
from trainer.distributed.exchange import StepReport
from trainer.distributed.parameter_server import ParameterServer
from trainer.distributed.traffic import bytes_a_step
from trainer.errors import TrainingError
from trainer.steps import Run

_STEPS_A_REPORT = 4
"""Steps of each rank, on average, that are reported as one."""


class AsynchronousSteps:
    """Each rank takes steps by itself."""

    def __init__(self, run: Run, connections: Connections, *, bound: int) -> None:
        """`bound`: how many steps a rank may be ahead of the oldest one that is not finished."""
        self._run, self._bound = run, bound
        self._server = ParameterServer([each.detach() for each in run.task.sparse_tables], connections)
        self._reports = _Reports(run) if run.ranks.is_first else None

    def take_all(self) -> None:
        """See `EpochSteps`."""
        run = self._run
        while run.goes_on:
            self._take_until_meeting()
            if run.control.save_due:
                run.save()

    def summary(self) -> dict[str, Any]:
        """What summary.json says of staleness, of the pushes to all ranks, and of what ranks send."""
        traffic = self._run.ranks.gather(vars(self._server.traffic))
        found = self._run.ranks.gather(vars(self._server.staleness))
        pushes = sum(each["pushes"] for each in found)
        return {
            "staleness": {
                "mean": sum(each["total"] for each in found) / max(1, pushes),
                "most": max(each["most"] for each in found),
                "bound": self._bound + self._run.ranks.world_size - 1,
            },
            "bytes_a_step": bytes_a_step(traffic, local_steps=self._run.config.local_steps),
        }

    def _take_until_meeting(self) -> None:
        """Take steps until the epoch ends, a checkpoint is due, or a rank was asked to stop."""
        run, dealer = self._run, self._new_dealer()
        run.ranks.gather(None)  # the dealer is there
        where, error = f"at step {run.done + 1}", None
        with failures.note_position(where), collectives.convert_errors(where):
            try:
                self._take_dealt(dealer)
            except TrainingError as raised:
                error = raised
                dealer.end()
        run.ranks.gather(None)  # all have told the dealer of their last steps
        with run.ranks.agreement():
            if error:
                raise error
            if self._reports:
                self._reports.add(dealer.take_reports(), last=True)
        with collectives.convert_errors("between two steps"):
            self._server.gather()
        stop = any(run.ranks.gather(run.stop.made))
        vars(run.progress).update(run.ranks.broadcast(vars(run.progress)))
        run.control.stopped = run.control.stopped or stop
        run.control.save_due = run.goes_on or run.ranks.broadcast(run.checkpointer.is_due(epoch_ends=True))

    def _new_dealer(self) -> Dealer:
        """The dealer of the steps that are left of the epoch, whom all ranks ask on the first one."""
        run = self._run

        def is_due(finished: int) -> bool:
            return run.stop.made or run.checkpointer.is_due(epoch_ends=finished == run.order.steps)

        found = Dealer(first=run.progress.step, last=run.order.steps, bound=self._bound, is_due=is_due)
        if run.ranks.is_first:
            self._server.deal = lambda finished, stop: found.take(finished, stop=stop)
        return found

    def _take_dealt(self, dealer: Dealer) -> None:
        finished: Finished | None = None
        while (step := self._server.take(finished, stop=self._run.stop.made)) is not None:
            finished = self._take_one(step)
            if self._reports:
                self._reports.add(dealer.take_reports())

    def _take_one(self, step: int) -> Finished:
        """Take a step of the epoch."""
        run, timer, ranks = self._run, self._run.timer, self._run.ranks.world_size
        done, size = run.order.steps * run.progress.epoch + step, run.order.size(step)
        timer.begin(size)
        rows = run.order.batch(run.progress.epoch, step)  # (global batch,)
        touched = run.task.touched_sparse_rows(rows, done)
        timer.end_phase(ORDER)
        versions = self._server.pull(touched)
        timer.end_phase(ALL_REDUCE)
        run.task.step_rate(run.config, done, run.steps, run.order.size(0))
        loss = run.compute(rows, ranks * size, done, run.slowdown.at(done)) * ranks
        seconds = timer.latest_stats().seconds
        means = run.compute.take_means()
        self._server.push([each.ids.long() for each in means], [-each.gradients for each in means], versions)
        timer.end_phase(ALL_REDUCE)
        run.throughput.add_own_rows(size)
        return Finished(rank=run.ranks.rank, step=step, loss=float(loss), rows=size, seconds=seconds)


class _Reports:
    """Reports what the ranks have finished, on the first rank: several steps as one, because each is of one rank."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting: list[Finished] = []

    def add(self, finished: list[Finished], *, last: bool = False) -> None:
        """Count these steps, and report them if they are enough, or the `last` ones for now. Raises TrainingError if
        nothing can be learnt any more."""
        run = self._run
        for each in finished:
            run.control.require_finite("loss", each.loss, run.done)
            run.progress.loss_sum += each.loss * each.rows
            run.progress.step += 1
            run.progress.rows_seen += each.rows
            run.reporter.advance(each.rows)
        self._waiting += finished
        if len(self._waiting) >= _STEPS_A_REPORT * run.ranks.world_size or (last and self._waiting):
            report = self._as_one(self._waiting)
            self._waiting = []
            run.throughput.add(report)
            run.reporter.step(report, run.throughput, epoch=run.progress.epoch + 1, last=run.done == run.steps)

    def _as_one(self, finished: list[Finished]) -> StepReport:
        ranks = self._run.ranks.world_size
        rows, seconds = np.zeros(ranks, np.int64), np.zeros(ranks)
        for each in finished:
            rows[each.rank] += each.rows
            seconds[each.rank] += each.seconds
        return StepReport(
            step=self._run.done - 1,
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
