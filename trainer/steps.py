"""What takes the steps of an epoch: the parts of a run that both ways need, and the way in which all ranks take each
step together (asynchronous.py has the other one).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.balancing.balancers import Balancer
from trainer.balancing.split import stratified_rows
from trainer.clock import ORDER, UPDATE, StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.computing.optimiser import Optimiser
from trainer.config import Slowdown, TrainConfig
from trainer.distributed import failures
from trainer.distributed.ddp import SummingComputer
from trainer.distributed.exchange import GradientExchange
from trainer.distributed.ranks import Ranks, StopRequest
from trainer.distributed.traffic import bytes_a_step
from trainer.order import BatchOrder
from trainer.output.checkpoint import RunProgress
from trainer.output.checkpoint_schedule import Checkpointer
from trainer.output.reporter import Reporter
from trainer.output.throughput import Throughput
from trainer.run_control import RunControl
from trainer.task import Coming, Task


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the steps of a run have to do with."""

    config: TrainConfig
    ranks: Ranks
    task: Task[Any]
    order: BatchOrder
    steps: int
    """Of the whole run."""
    compute: GradientComputer | SummingComputer
    timer: StepTimer
    slowdown: Slowdown
    progress: RunProgress
    control: RunControl
    throughput: Throughput
    reporter: Reporter
    checkpointer: Checkpointer
    stop: StopRequest
    save: Callable[[], None]
    """Writes a checkpoint; all ranks call it at once."""

    @property
    def done(self) -> int:
        """The steps of the whole run so far."""
        return self.order.steps * self.progress.epoch + self.progress.step

    @property
    def goes_on(self) -> bool:
        """Whether the epoch has more steps to take."""
        return self.progress.step < self.order.steps and not self.control.stopped

    def begin_epoch(self) -> Coming:
        """Get the rows of the next epoch, or of one that was begun; waits until they are there."""
        coming = self.task.begin_epoch(lambda: self.stop.made, wait=False)
        if coming is Coming.LATER:
            self.save()  # who sends rows may wait for a checkpoint of those before
            since = time.monotonic()
            self.reporter.waiting(self.done, 0.0)
            while coming is Coming.LATER:
                coming = self.task.begin_epoch(lambda: self.stop.made, wait=True)
            self.reporter.waiting(self.done, time.monotonic() - since)
        return coming

    def end_epoch(self) -> None:
        """Begin the next epoch: the rows of this one were learnt from."""
        self.progress.end_epoch()
        if self.task.end_epoch():
            self.checkpointer.outdate()


class EpochSteps(Protocol):
    """A way to take the steps of an epoch."""

    def take_all(self) -> None:
        """Take the steps that are left of the epoch, unless the run is asked to stop, and write the checkpoints that
        are due meanwhile. All ranks have the same weights then."""
        ...

    def summary(self) -> dict[str, Any]:
        """What summary.json says of this way. All ranks call it at once."""
        ...


class SynchronousSteps:
    """All ranks take each step together: each computes its share, and the gradients are summed."""

    def __init__(
        self, run: Run, *, exchange: GradientExchange, optimiser: Optimiser, balancer: Balancer, sparse: bool
    ) -> None:
        """`sparse`: whether only the touched rows of tables are sent."""
        self._run, self._exchange, self._optimiser, self._balancer = run, exchange, optimiser, balancer
        self._sparse = sparse

    def take_all(self) -> None:
        """See `EpochSteps`."""
        run = self._run
        while run.goes_on:
            with failures.note_position(f"at step {run.done + 1}"):
                self._take_one()
            if run.control.save_due:
                run.save()
        run.control.handle(self._exchange.drain())

    def summary(self) -> dict[str, Any]:
        """See `EpochSteps`."""
        run = self._run
        traffic = run.ranks.gather(vars(self._exchange.traffic))
        return {"bytes_a_step": bytes_a_step(traffic, local_steps=run.config.local_steps or 1)}

    def _take_one(self) -> None:
        run, timer, done = self._run, self._run.timer, self._run.done
        size = run.order.size(run.progress.step)
        split = self._balancer.split(size)
        timer.begin(int(split[run.ranks.rank]))
        rows = run.order.batch(run.progress.epoch, run.progress.step)  # (global batch,)
        own = rows[stratified_rows(run.task.lengths(rows), split, run.ranks.rank)]  # (share,)
        touched = run.task.touched_rows(rows) if self._sparse else None
        self._optimiser.clear()
        timer.end_phase(ORDER)
        slowness = run.slowdown.at(done)
        rate = run.task.step_rate(run.config, done, run.steps, run.order.size(0))
        loss = run.compute(own, size, done, slowness)
        report = self._exchange.reduce(
            step=done,
            size=size,
            touched=touched,
            means=run.compute.take_means(),
            loss=loss,
            rows=len(own),
            piece=run.compute.piece_rows,
            stop=run.stop.made,
            save=run.ranks.is_first and run.checkpointer.is_due(epoch_ends=run.progress.step + 1 == run.order.steps),
        )
        self._optimiser.step(rate)
        timer.end_phase(UPDATE)
        run.throughput.add_own_rows(len(own))
        run.progress.step += 1
        run.progress.rows_seen += size
        run.reporter.advance(size)
        run.control.handle(report)
