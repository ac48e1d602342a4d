"""Training loop, the same on every rank and for every task (task.py): epochs, evaluations, checkpoints and the end.

run.py has the parts of a run; synchronous.py and asynchronous.py have the two ways to take its steps.

The trained model depends on the data, the settings and the seed. The number of ranks, the splits and interruptions
change only the order of floating-point sums. They do not change dropout, which depends only on seed, step and row
(dropout.py).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from common.files import indented_json
from trainer.clock import Activity
from trainer.distributed import drift, failures
from trainer.output.lines import End, Epoch, Start, Test, Waiting
from trainer.output.run_files import SUMMARY, write_whole
from trainer.stepper import Stepper
from trainer.task import TEST, VALIDATION, EpochStatus

_EVALUATION_SHARE = 0.05
"""Largest share of time for evaluation on a stream, where training on a part can take less time than an evaluation."""


class EvaluationSchedule:
    """Decides when an evaluation is due on a stream of rows."""

    def __init__(self) -> None:
        self._ended, self._seconds = time.monotonic(), 0.0

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Measure the duration of an evaluation."""
        start = time.monotonic()
        yield
        self._ended = time.monotonic()
        self._seconds = self._ended - start

    def is_due(self) -> bool:
        """Return whether the time since the latest evaluation is long enough for another evaluation."""
        return (time.monotonic() - self._ended) * _EVALUATION_SHARE >= self._seconds


class Trainer:
    """Loop of a run on this rank. All ranks call each method at the same time."""

    def __init__(self, run: Stepper) -> None:
        self._run, self._evaluations = run, EvaluationSchedule()

    def train(self, notes: Sequence[str] = ()) -> dict[str, Any]:
        """Train until the end of the run, or until the run is asked to stop. Return the content of summary.json.

        `notes`: messages for the user about the start. Raises the same TrainingError on all ranks if training diverged.
        """
        run = self._run
        with run.taking_steps(), run.reporter:
            start = Start(
                config=run.config.plain(),
                world_size=run.ranks.world_size,
                devices=tuple(run.ranks.gather(run.ranks.device_name)),
                rows=dict(run.data.sizes),
                digest=run.data.digest,
                global_batch=run.order.global_batch,
                epochs=run.state.epochs,
                steps=run.state.steps,
                from_step=run.state.steps_done,
                own_rates=tuple(run.throughput.rates),
                precision=run.task.precision,
            )
            run.reporter.start(start, run.ranks, notes)
            self.learn()
            run.reporter.close_bar()
            with run.ranks.agreement():
                run.reporter.require_output()
            self.save()
            # No decision depends on the test rows, so they are evaluated only at the end.
            tested = None if run.state.stopped else self.evaluate(TEST)
            return self.finish(tested)

    def learn(self) -> None:
        """Take all remaining steps, unless the run is asked to stop."""
        run, state = self._run, self._run.state
        failures.mark_started()
        while state.progress.epoch < state.epochs and self.begin_epoch():
            self.train_epoch()
            if not state.stopped and (run.task.stream is None or run.ranks.broadcast(self._evaluations.is_due())):
                self.validate()
            if state.stopped:
                break
            state.progress.end_epoch()
            if run.task.stream is not None:
                run.task.stream.end_epoch()
                run.checkpointer.invalidate()

    def begin_epoch(self) -> bool:
        """Wait for the rows of the next epoch. Return False without more rows, or if the run was asked to stop."""
        run, stream = self._run, self._run.task.stream
        if stream is None:
            return True
        with run.clock.during(Activity.WAITING):
            status = stream.begin_epoch(run.stop_requested, wait=False)
            if status is EpochStatus.PENDING:
                self.save()  # A reader of the stream might be waiting for a checkpoint after the previous rows.
                since = time.monotonic()
                run.reporter.write(Waiting(step=run.state.steps_done, seconds=0.0))
                while status is EpochStatus.PENDING:
                    status = stream.begin_epoch(run.stop_requested, wait=True)
                waited = round(time.monotonic() - since, 3)
                run.reporter.write(Waiting(step=run.state.steps_done, seconds=waited))
        run.state.stopped = status is EpochStatus.STOP
        return status is EpochStatus.READY

    def train_epoch(self) -> None:
        """Take the remaining steps of the epoch, unless the run is asked to stop, and write due checkpoints."""
        run, state = self._run, self._run.state
        with run.clock.during(Activity.TRAINING):
            while state.epoch_continues:
                run.take_steps()
                if state.save_due:
                    self.save()
            run.finish_steps()
            if not state.stopped:
                run.reporter.weights_synchronised(drift.synchronise(run.task.model, state.optimiser, run.ranks))
                if state.save_due:
                    self.save()

    def validate(self) -> None:
        """Evaluate the model on the validation rows after an epoch."""
        run = self._run
        if validation := self.evaluate(VALIDATION):
            progress = run.state.progress
            progress.validation = validation
            loss = progress.loss_sum / run.order.rows
            run.reporter.write(Epoch(epoch=progress.epoch + 1, loss=loss, validation=validation))

    def evaluate(self, part: str) -> dict[str, Any] | None:
        """Return the loss and other measures on a part of the rows. All ranks return the same values.

        If the run is asked to stop during the evaluation, returns None. The resumed run then evaluates this part again.
        """
        run = self._run
        with run.clock.during(Activity.EVALUATION), self._evaluations.evaluating():
            split = run.balancer.split(run.data.sizes[part])
            measures = run.task.evaluate(part, split=split, stop=run.stop_requested)
        if measures is None:
            run.state.stopped = True
        else:
            run.require_finite(f"loss on the {part} rows", measures["loss"], run.state.steps_done - 1)
        return measures

    def save(self) -> None:
        """Write a checkpoint. First check the latest loss, because diverged weights must not be saved."""
        run = self._run
        run.finish_steps()
        run.state.save_due = False
        written = run.checkpointer.save(run.state.steps_done, awaited=run.state.epoch_continues)
        if written and run.task.stream is not None:
            run.task.stream.checkpoint_written()

    def finish(self, tested: dict[str, Any] | None) -> dict[str, Any]:
        """Report the end of the run, save the model, and return the content of summary.json.

        `tested`: the measures on the test rows; None if the run was stopped.
        """
        run, state = self._run, self._run.state
        run.timer.finish()
        if tested:
            run.reporter.notes(run.task.closing_notes())
            run.reporter.write(Test.of(state.progress.epoch, tested))
            run.measure_rates_again()
        summary = self.summary(tested)
        with run.ranks.agreement():  # another run can use the path since the training ended
            run.reporter.require_output()
        if run.ranks.is_first:
            if tested or run.task.stream is not None:  # most runs on a stream end because they are stopped
                run.task.save(run.config.output, epoch=state.progress.epoch, tested=tested or {})
            write_whole(run.config.output / SUMMARY, indented_json(summary))
        run.reporter.write(End(summary=summary))
        return summary

    def summary(self, tested: dict[str, Any] | None) -> dict[str, Any]:
        """Return the content of summary.json (output/summary.py)."""
        run, state = self._run, self._run.state
        return {
            **run.task.summary_measures(tested),
            **run.throughput.summary(run.ranks, run.timer),
            "rows_seen": state.progress.rows_seen,
            "rows": run.order.rows,
            "epochs": state.epochs,
            "validation": state.progress.validation,
            "stopped": state.stopped,
            "steps": state.steps_done,
            "global_batch": run.order.global_batch,
            "world_size": run.ranks.world_size,
            "split": run.balancer.split(run.order.size(0)).tolist(),
            **run.task.summary_settings(),
            "digest": run.data.digest,
            **run.communication(),
        }
