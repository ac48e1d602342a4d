"""Training loop, the same on every rank and for every task (task.py).

Each step takes a global batch (order.py) and splits it over the ranks (balancers.py). Each rank computes the gradients
of its rows (gradients.py), one all-reduce sums them (exchange.py), and the optimiser updates the weights
(optimiser.py). All joint decisions (how to split, when to stop or to save) depend only on the result of the all-reduce
(`handle_report`). A rank must not base them on local information such as its clock, because the other ranks would then
wait for it forever.

The trained model depends on the data, the settings and the seed. The number of ranks, the splits and interruptions
change only the order of floating-point sums. They do not change dropout, which depends only on seed, step and row
(dropout.py).
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from shoal_balance import BatchOrder, make_balancer

from common.display import plural
from common.errors import TrainingError
from common.files import indented_json
from trainer.clock import ORDER, UPDATE, Activity, Clock, step_timer
from trainer.config import TrainConfig
from trainer.distributed import drift, failures
from trainer.distributed.exchange import GradientExchange, StepReport, bytes_a_step
from trainer.distributed.ranks import Ranks, StopRequest
from trainer.output import checkpoint
from trainer.output.checkpoint import RunProgress
from trainer.output.checkpoint_schedule import Checkpointer
from trainer.output.lines import End, Epoch, Start, Test, Waiting
from trainer.output.reporter import Reporter
from trainer.output.run_files import CHECKPOINTS, SUMMARY, write_whole
from trainer.output.throughput import Throughput
from trainer.rank_errors import SAME_SPLIT_ADVICE, DivergedError
from trainer.rate_measurement import measure_initial_rates, measure_own_rates
from trainer.task import TEST, VALIDATION, EpochStatus, RunData, task_class

_REBALANCE_STEPS = 10
"""Number of steps after which the split over the ranks is computed again."""


class Trainer:
    """Training run on this rank.

    All ranks take each step together, and call each method at the same time. asynchronous.py has the asynchronous loop.
    """

    def __init__(
        self,
        config: TrainConfig,
        ranks: Ranks,
        data: RunData,
        order: BatchOrder,
        *,
        saved: dict[str, Any] | None,
        clock: Clock,
        stop: StopRequest,
    ) -> None:
        """Create the model and its optimiser, restore them from `saved` if given, and measure the ranks' own rates.

        Raises TrainingError on all ranks in these cases: the saved state belongs to a different run, `config` does not
        fit the number of ranks, or the output folder is not writable.
        """
        self.config, self.ranks, self.data, self.order, self.clock, self.stop = config, ranks, data, order, clock, stop
        self.epochs = config.optimisation.epochs_for(order.steps)
        self.steps = self.epochs * order.steps
        self.stopped = False
        """True if the run ends early because it was asked to stop."""
        self.save_due = False
        """True if a checkpoint must be written after this step."""

        torch.manual_seed(config.seed)
        self.task = task = task_class(config.model)(config, ranks, data)
        self.optimiser = task.optimiser(config.optimisation)
        self.progress = RunProgress()
        if saved:
            self.load_state_dict(saved)

        self.timer = step_timer(ranks.device)
        self.compute = task.gradient_computer(self.timer)
        self.compute.slowness = config.slow.get(ranks.rank, 1.0)
        self.exchange = GradientExchange(
            task.model,
            task.tables,
            timer=self.timer,
            clip_norm=config.optimisation.clip_norm,
            sparse_tables=task.sparse_tables,
        )
        with clock.during(Activity.RATES):
            rates = measure_initial_rates(self.compute, self.optimiser, total=order.size(0))
        with ranks.agreement():
            try:
                self.balancer = make_balancer(
                    config.balance,
                    np.array(rates),
                    every=_REBALANCE_STEPS,
                    steps_per_epoch=order.steps,
                    total=order.size(0),
                )
            except ValueError as error:
                raise TrainingError(f"--balance {config.balance}: {error}") from error

        clock.switch_to(Activity.OTHER)
        self.throughput = Throughput(self.progress, clock, rates)
        self.reporter = reporter = Reporter(
            config.output, ranks, rows=self.epochs * order.rows, seen=self.progress.rows_seen, fresh=not saved
        )
        done = self.steps_done if saved else None
        self.checkpointer = Checkpointer(
            config.checkpoint_minutes, self.state_dict, reporter, clock, self.throughput, done
        )

    @property
    def steps_done(self) -> int:
        """Number of steps that the whole run has taken so far."""
        return self.order.steps * self.progress.epoch + self.progress.step

    @property
    def stop_requested(self) -> bool:
        """True if this rank was asked to stop, or cannot save the run."""
        return self.stop.requested or self.reporter.output_missing

    @property
    def epoch_continues(self) -> bool:
        """True if this epoch has more steps to take."""
        return self.progress.step < self.order.steps and not self.stopped

    def train(self, notes: Sequence[str] = ()) -> dict[str, Any]:
        """Train until the end of the run, or until the run is asked to stop. Return the content of summary.json.

        `notes`: messages for the user about the start. Raises the same TrainingError on all ranks if training diverged.
        """
        with self.reporter:
            start = Start(
                config=self.config.plain(),
                world_size=self.ranks.world_size,
                devices=tuple(self.ranks.gather(self.ranks.device_name)),
                rows=dict(self.data.sizes),
                digest=self.data.digest,
                global_batch=self.order.global_batch,
                epochs=self.epochs,
                steps=self.steps,
                from_step=self.steps_done,
                own_rates=tuple(self.throughput.rates),
                precision=self.task.precision,
            )
            self.reporter.start(start, self.ranks, notes)
            self.learn()
            self.reporter.close_bar()
            with self.ranks.agreement():
                self.reporter.require_output()
            self.save()
            # No decision depends on the test rows, so they are evaluated only at the end.
            tested = None if self.stopped else self.evaluate(TEST)
            return self.finish(tested)

    def learn(self) -> None:
        """Take all remaining steps, unless the run is asked to stop."""
        failures.mark_started()
        while self.progress.epoch < self.epochs and self.begin_epoch():
            self.train_epoch()
            if not self.stopped and self.task.evaluates_epoch:
                self.validate()
            if self.stopped:
                break
            self.end_epoch()

    def begin_epoch(self) -> bool:
        """Wait for the rows of the next epoch. Return False without more rows, or if the run was asked to stop."""
        with self.clock.during(Activity.WAITING):
            status = self.task.begin_epoch(lambda: self.stop_requested, wait=False)
            if status is EpochStatus.PENDING:
                self.save()  # A reader of the stream might be waiting for a checkpoint after the previous rows.
                since = time.monotonic()
                self.reporter.write(Waiting(step=self.steps_done, seconds=0.0))
                while status is EpochStatus.PENDING:
                    status = self.task.begin_epoch(lambda: self.stop_requested, wait=True)
                self.reporter.write(Waiting(step=self.steps_done, seconds=round(time.monotonic() - since, 3)))
        self.stopped = status is EpochStatus.STOP
        return status is EpochStatus.READY

    def train_epoch(self) -> None:
        """Take the remaining steps of the epoch, unless the run is asked to stop, and write due checkpoints."""
        with self.clock.during(Activity.TRAINING):
            self.train_steps()
            if not self.stopped:
                self.reporter.weights_synchronised(drift.synchronise(self.task.model, self.optimiser, self.ranks))
                if self.save_due:
                    self.save()

    def train_steps(self) -> None:
        """Take the remaining steps of the epoch. Afterwards all ranks have the same weights, except for rounding."""
        while self.epoch_continues:
            with failures.note_position(f"at step {self.steps_done + 1}"):
                self.train_step()
            if self.save_due:
                self.save()
        self.handle_report(self.exchange.drain())

    def train_step(self) -> None:
        """Take one step: compute this rank's gradients, sum them over the ranks, and update the weights."""
        task, order, progress, timer, step = self.task, self.order, self.progress, self.timer, self.steps_done
        size = order.size(progress.step)
        split = self.balancer.split(size)
        timer.begin(int(split[self.ranks.rank]))
        rows = order.batch(progress.epoch, progress.step)  # (global batch,)
        own = rows[task.share(rows, split, self.ranks.rank)]  # (share,)
        touched = task.touched_rows(rows) if self.ranks.world_size > 1 else None
        self.optimiser.clear()
        timer.end_phase(ORDER)
        rate = task.step_rate(self.config.optimisation, step, self.steps, order.size(0))
        loss = self.compute(own, size, step)
        report = self.exchange.reduce(
            step=step,
            size=size,
            touched=touched,
            table_gradients=self.compute.take_table_gradients(),
            loss=loss,
            rows=len(own),
            piece=self.compute.piece_rows,
            stop=self.stop_requested,
            save=self.ranks.is_first and self.checkpointer.is_due(epoch_ends=progress.step + 1 == order.steps),
        )
        self.optimiser.step(rate)
        timer.end_phase(UPDATE)
        self.throughput.own_rows += len(own)
        progress.step += 1
        progress.rows_seen += size
        self.reporter.advance(size)
        self.handle_report(report)

    def handle_report(self, report: StepReport | None) -> None:
        """Apply the report of a step: update the progress, the balancer and the record.

        All ranks must call this method after the same step. Otherwise they would split the next step differently.

        Raises TrainingError on all ranks if training diverged.
        """
        if report is None:
            return
        self.require_finite("loss", report.loss, report.step)
        self.require_finite("gradient norm", report.norm, report.step)
        self.require_complete(report)
        self.progress.loss_sum += report.loss * report.size
        self.balancer.observe(report.rows, report.seconds)
        self.throughput.add(report)
        self.stopped = self.stopped or report.stop
        self.save_due = self.save_due or report.save
        last = self.stopped or report.step + 1 == self.steps
        self.reporter.step(report, self.throughput, epoch=self.progress.epoch + 1, last=last)

    def validate(self) -> None:
        """Evaluate the model on the validation rows after an epoch."""
        if validation := self.evaluate(VALIDATION):
            self.progress.validation = validation
            loss = self.progress.loss_sum / self.order.rows
            self.reporter.write(Epoch(epoch=self.progress.epoch + 1, loss=loss, validation=validation))

    def evaluate(self, part: str) -> dict[str, Any] | None:
        """Return the loss and other measures on a part of the rows. All ranks return the same values.

        If the run is asked to stop during the evaluation, returns None. The resumed run then evaluates this part again.
        """
        with self.clock.during(Activity.EVALUATION):
            split = self.balancer.split(self.data.sizes[part])
            measures = self.task.evaluate(part, split=split, stop=lambda: self.stop_requested)
        if measures is None:
            self.stopped = True
        else:
            self.require_finite(f"loss on the {part} rows", measures["loss"], self.steps_done - 1)
        return measures

    def end_epoch(self) -> None:
        """Finish this epoch and advance to the next."""
        self.progress.end_epoch()
        if self.task.end_epoch():
            self.checkpointer.invalidate()

    def save(self) -> None:
        """Write a checkpoint. First check the latest loss, because diverged weights must not be saved."""
        self.handle_report(self.exchange.drain())
        self.save_due = False
        if self.checkpointer.save(self.steps_done, awaited=self.epoch_continues):
            self.task.checkpoint_written()

    def state_dict(self) -> dict[str, Any]:
        """Return the whole state that is needed to resume the run (checkpoint.py)."""
        return {
            "format": checkpoint.FORMAT,
            "config": {**self.config.plain(), "epochs": self.epochs},
            "digest": self.data.digest,
            "global_batch": self.order.global_batch,
            "progress": {**vars(self.progress), "seconds": self.throughput.seconds},
            "model": self.task.model.state_dict(),
            "optimiser": self.optimiser.state(),
            "task": self.task.state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the run from a state. Raises TrainingError on all ranks if the state belongs to a different model."""
        with self.ranks.agreement():
            self.progress = checkpoint.restore(
                state, self.task.model, self.optimiser, self.task.restore, where=self.config.output / CHECKPOINTS
            )

    def finish(self, tested: dict[str, Any] | None) -> dict[str, Any]:
        """Report the end of the run, save the model, and return the content of summary.json.

        `tested`: the measures on the test rows; None if the run was stopped.
        """
        self.timer.finish()
        if tested:
            self.reporter.notes(self.task.closing_notes())
            self.reporter.write(Test.of(self.progress.epoch, tested))
            with self.clock.during(Activity.RATES):
                split = self.balancer.split(self.order.size(0))
                rates = measure_own_rates(self.compute, self.optimiser, split=split)
            # Each rank's rate is measured twice; use the higher value.
            self.throughput.rates = [max(pair) for pair in zip(self.throughput.rates, rates, strict=True)]
        summary = self.summary(tested)
        with self.ranks.agreement():  # another run can use the path since the training ended
            self.reporter.require_output()
        if self.ranks.is_first:
            if tested or self.task.saves_when_stopped:
                self.task.save(self.config.output, epoch=self.progress.epoch, tested=tested or {})
            write_whole(self.config.output / SUMMARY, indented_json(summary))
        self.reporter.write(End(summary=summary))
        return summary

    def summary(self, tested: dict[str, Any] | None) -> dict[str, Any]:
        """Return the content of summary.json (output/summary.py)."""
        return {
            **self.task.summary_measures(tested),
            **self.throughput.summary(self.ranks, self.timer),
            "rows_seen": self.progress.rows_seen,
            "rows": self.order.rows,
            "epochs": self.epochs,
            "validation": self.progress.validation,
            "stopped": self.stopped,
            "steps": self.steps_done,
            "global_batch": self.order.global_batch,
            "world_size": self.ranks.world_size,
            "split": self.balancer.split(self.order.size(0)).tolist(),
            **self.task.summary_settings(),
            "digest": self.data.digest,
            **self.communication(),
        }

    def communication(self) -> dict[str, Any]:
        """Return the fields of summary.json that describe the traffic between ranks."""
        traffic = self.ranks.gather(vars(self.exchange.traffic))
        return {"bytes_a_step": bytes_a_step(traffic, local_steps=self.config.optimisation.local_steps or 1)}

    def require_finite(self, what: str, value: float, step: int) -> None:
        """Raise DivergedError if `value` is infinite or NaN. `what` is the name of the value, for the message."""
        if not np.isfinite(value):
            raise DivergedError(
                f"the {what} is {value} at step {step + 1}; lower --learning-rate" + self.checkpointer.resume_advice()
            )

    def require_complete(self, report: StepReport) -> None:
        """Raise TrainingError unless the ranks computed every row of the step exactly once."""
        if not report.is_complete:
            computed = report.computed.tolist()
            of_ranks = "; ".join(f"{name}: {rows:,}" for name, rows in zip(self.reporter.names, computed, strict=True))
            raise TrainingError(
                f"the ranks computed {plural(sum(computed), 'row')} at step {report.step + 1}, but its global batch "
                f"has {report.size:,} ({of_ranks}): {SAME_SPLIT_ADVICE}" + self.checkpointer.resume_advice()
            )
