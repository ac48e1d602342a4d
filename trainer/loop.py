"""A training run from beginning to end, the same on every rank.

Per step: the global batch of this step (order.py), cut over the ranks (balance.py), each rank's part and what it claims
besides (compute.py, claims.py), one all-reduce (exchange.py), one step of the optimiser. What ranks must agree on (the
split, when to stop or to save) follows from what the all-reduce brought. The easy mistake is to let one rank decide by
what only it knows, such as its clock: the others would wait for it for ever.

What a result depends on: the data, the settings, the seed. The number of ranks, the splits, and interruptions change
it by no more than the order of floating-point sums: dropout, too, goes by seed, step and row (dropout.py).
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from corpus.counted import plural
from corpus.text import FIRST_WORD
from trainer import checkpoint, drift, faults, memory, models, precision, start
from trainer.balance import balancer
from trainer.claims import Claims, Counter, Plan
from trainer.clock import ORDER, UPDATE, Activity, Clock, laps_of
from trainer.compute import Compute
from trainer.config import Slowed, TrainConfig
from trainer.data import Data, Rows
from trainer.dropout import Words
from trainer.errors import SPLIT_ALIKE, TrainingError
from trainer.evaluate import evaluate
from trainer.exchange import MOST_WORDS, Exchange, Report
from trainer.files import CHECKPOINTS, MODEL, RECORD, SUMMARY, write_json
from trainer.losses import Loss
from trainer.metrics import measures
from trainer.optimise import Optimiser, learning_rate
from trainer.order import IntArray, Order
from trainer.predict import save_model
from trainer.progress import Progress
from trainer.ranks import Ranks, StopRequest
from trainer.rate import first_rates, own_rates
from trainer.record import Record, Thinning, say
from trainer.sitting import Sitting

_EPOCH_CHECKPOINT_SECONDS = 10.0
"""A checkpoint that is older than this is followed by another one at an epoch's end."""

_MEASURES = ("accuracy", "balanced_accuracy", "f1_positive", "f1_negative", "majority")


def train(config: TrainConfig, ranks: Ranks) -> dict[str, Any]:
    """Train, and return the content of summary.json. Raises TrainingError, the same on all ranks, when it cannot."""
    clock = Clock()
    with StopRequest() as stop, memory.needed(ranks.device):
        config = start.going_on(config, ranks)
        data = start.data(config, ranks)
        run = _Run(config, ranks, data, stop, clock)
        clock.turn_to(Activity.OTHER)
        with run.record:
            return run.train()


class _Run:
    def __init__(self, config: TrainConfig, ranks: Ranks, data: Data, stop: StopRequest, clock: Clock) -> None:
        saved, config, self.notes = start.saved(config, ranks, data)
        self.config, self.ranks, self.data, self.stop, self.clock = config, ranks, data, stop, clock
        self.order = Order(
            rows=len(data.training),
            global_batch=saved["global_batch"] if saved else config.batch_for(ranks.size),
            seed=config.seed,
        )
        with ranks.agreement():
            if ranks.size > self.order.size(0):
                more = "" if saved else f"raise --global-batch to at least {ranks.size}, or "
                raise TrainingError(
                    f"{ranks.size} ranks cannot share a global batch of {plural(self.order.size(0), 'row')}; "
                    f"{more}start fewer ranks"
                )
        self.epochs = config.epochs_of(self.order.steps)
        self.steps = self.epochs * self.order.steps
        self.loss = Loss(
            kind=config.loss, scale=data.scale, positive_weight=config.positive_weight or data.balancing_weight()
        )
        torch.manual_seed(config.seed)
        self.model = models.build(config.model, self._model_settings()).to(ranks.device)
        with ranks.agreement():
            self.precision = precision.choose(config.precision, ranks.gather(precision.capability(ranks.device)))
        self.model.precision = precision.NAMES[self.precision]
        self.optimiser = Optimiser(self.model, config)
        self.progress = Progress()
        with ranks.agreement():
            if saved:
                where = config.output / CHECKPOINTS
                self.progress = checkpoint.restore(saved, self.model, self.optimiser, where=where)
        self.slowed = config.slow.get(ranks.rank, Slowed(1.0))
        self.laps = laps_of(ranks.device, slowed=ranks.rank in config.slow)
        self.compute = Compute(
            self.model,
            data.training,
            loss=self.loss,
            device=ranks.device,
            seed=config.seed,
            words=self._words(),
            laps=self.laps,
            threads=ranks.threads,
        )
        self.exchange = Exchange(self.model, laps=self.laps, clip_norm=config.clip_norm, bits=config.gradient_bits)
        first, table = self.order.batch(0, 0), self.model.embedding.num_embeddings
        self.by_word = ranks.size > 1 and len(data.training.ids(first, table)) <= MOST_WORDS * table
        self.stopped = self.save_due = self.mended = False
        self.saved_at, self.saved_steps = time.monotonic(), self.steps_done if saved else None
        self.sitting = Sitting(self.progress, clock, self._rates_by(first_rates, total=self.order.size(0)))
        with ranks.agreement():
            try:
                self.balancer = balancer(
                    config.balance,
                    np.array(self.sitting.rates),
                    every=config.rebalance_every,
                    steps_per_epoch=self.order.steps,
                    total=self.order.size(0),
                )
            except ValueError as error:
                raise TrainingError(f"--balance {config.balance}: {error}") from error
        self.claims = Claims(wanted=config.balance == "steps" and ranks.device.type == "cpu")
        self.counter = Counter(ranks.store, ranks.from_first(Counter.now(ranks.store)))
        self.names, self.pieces = ranks.gather(faults.who(ranks.rank)), np.zeros(ranks.size, dtype=np.int64)
        self.thinning = Thinning(config.record_every)
        with ranks.agreement():
            self.record = self._open_output(fresh=not saved)

    def train(self) -> dict[str, Any]:
        self._record_start()
        faults.begun()
        with self._bar() as self.bar:
            while self.progress.epoch < self.epochs and not self.stopped:
                with self.clock.during(Activity.TRAINING):
                    self._train_epoch()
                if not self.stopped:
                    self._evaluate_epoch()
        self._save()
        tested = self._judge() if not self.stopped else None
        self.laps.finish()
        if tested:
            self.sitting.measured_again(self._rates_by(own_rates, split=self.balancer.split(self.order.size(0))))
        summary = self._summary(tested)
        if self.ranks.first:
            if tested:
                self._save_model(tested)
            write_json(self.config.output / SUMMARY, summary)
        self.record.write("end", **summary)
        return summary

    def _open_output(self, *, fresh: bool) -> Record:
        if not self.ranks.first:
            return Record(None, fresh=fresh)
        output = self.config.output
        try:
            (output / SUMMARY).unlink(missing_ok=True)
            if fresh:
                checkpoint.clear(output / CHECKPOINTS)
            return Record(output / RECORD, fresh=fresh and faults.lost_before() is None)
        except OSError as error:
            raise TrainingError(
                f"cannot write {error.filename}: {error.strerror}; remove it, or choose another --output"
            ) from error

    def _train_epoch(self) -> None:
        """Train to the end of the epoch."""
        while self.progress.step < self.order.steps and not self.stopped:
            with faults.at(f"at step {self.steps_done + 1}"):
                self._step()
            if self.save_due:
                self._save()
        self._heed(self.exchange.drain())
        if not self.stopped:
            self._hold_together()
            if self.save_due:
                self._save()

    def _hold_together(self) -> None:
        """Undo what rounding made of the ranks' weights, which are to be the same."""
        apart = drift.mend(self.model, self.optimiser, self.ranks)
        if apart is not None and not self.mended:
            self._note(
                f"the ranks' weights had come apart by up to {apart:.1e}, as unlike processors round otherwise; all "
                "went on with rank 0's, as they do after each epoch"
            )
            self.mended = True

    def _step(self) -> None:
        rank, size = self.ranks.rank, self.order.size(self.progress.step)
        plan = self.claims.plan(self.balancer.split(size))
        self.laps.begin(int(plan.share[rank]))
        rows = self.order.batch(self.progress.epoch, self.progress.step)  # (global batch,)
        own = rows[plan.own(self.data.training.lengths[rows], rank)]  # (share,)
        words = self.data.training.ids(rows, self.model.embedding.num_embeddings) if self.by_word else None
        self.optimiser.clear()
        self.laps.end_of(ORDER)
        loss, computed = self.compute(own, size, self.steps_done, self.slowed.at(self.steps_done)), len(own)
        if plan.pieces:
            more, claimed = self._claim(plan, rows)
            loss, computed = loss + more, computed + claimed
        report = self.exchange.reduce(
            step=self.steps_done,
            size=size,
            words=words,
            loss=loss,
            rows=computed,
            piece=self.compute.fitting,
            stop=self.stop.made,
            save=self.ranks.first and self._wants_checkpoint(),
        )
        self.optimiser.step(learning_rate(self.config, self.steps_done, self.steps, self.order.size(0)))
        self.laps.end_of(UPDATE)
        self.sitting.compute(len(own))
        self.progress.step += 1
        self.progress.rows_seen += size
        self.bar.update(size)
        self._heed(report)

    def _claim(self, plan: Plan, rows: IntArray) -> tuple[Tensor, int]:
        """Compute pieces of the pool as long as there are any; returns their part of the mean loss, and their rows."""
        loss, claimed, lengths = torch.zeros(()), 0, self.data.training.lengths[rows]
        for number in self.counter.claimed(plan, self.ranks.rank, f"at step {self.steps_done + 1}"):
            piece = rows[plan.piece(lengths, number)]
            self.laps.claims(len(piece))
            loss += self.compute(piece, len(rows), self.steps_done, self.slowed.at(self.steps_done))
            self.sitting.compute(len(piece), claimed=True)
            claimed += len(piece)
        self.laps.claims(0)
        return loss, claimed

    def _heed(self, report: Report | None) -> None:
        """Act on what all ranks know of a step; called at the same points by all, so that they stay in agreement."""
        if report is None:
            return
        for what, value in (("loss", report.loss), ("gradient's length", report.norm)):
            self._require_finite(what, value, report.step)
        self._require_whole(report)
        self.progress.loss_sum += report.loss * report.size
        self.balancer.observe(report.shares.rows, report.shares.seconds)
        self.claims.observe(report.shares)
        self.sitting.add(report)
        for rank in np.flatnonzero(report.pieces != self.pieces):
            rows = report.pieces[rank]
            pieces = f"pieces of {plural(int(rows), 'row')}"
            self._note(f"{self.names[rank]}: its share does not fit into its memory; going on in {pieces}")
        self.pieces = report.pieces
        self.stopped = self.stopped or report.stop
        self.save_due = self.save_due or report.save
        last = self.stopped or report.step + 1 == self.steps
        if self.thinning.takes(report.step, last=last, now=time.monotonic()):
            self.record.write(
                "step",
                epoch=self.progress.epoch + 1,
                step=report.step + 1,
                loss=report.loss,
                rows_per_second=self.sitting.rows_per_second,
                balanced=self.sitting.balanced,
                split=report.rows.tolist(),
                compute_seconds=report.seconds.tolist(),
            )
            self.bar.set_postfix_str(f"loss {report.loss:.3f}, {self.sitting.balanced:.0%} balanced")

    def _require_finite(self, what: str, value: float, step: int) -> None:
        if not np.isfinite(value):
            way = "" if self.precision == "float32" else ", or take --precision float32"
            raise TrainingError(
                f"the {what} is {value} at step {step + 1}; lower --learning-rate, or set --clip-norm{way}"
                + self._way_back()
            )

    def _require_whole(self, report: Report) -> None:
        if not report.is_whole:
            computed = report.computed.tolist()
            told = "; ".join(f"{name}: {rows:,}" for name, rows in zip(self.names, computed, strict=True))
            raise TrainingError(
                f"the ranks computed {plural(sum(computed), 'row')} at step {report.step + 1}, and not the "
                f"{report.size:,} of its global batch ({told}): {SPLIT_ALIKE}" + self._way_back()
            )

    def _way_back(self) -> str:
        return "" if self.saved_steps is None else f", and go on from step {self.saved_steps} with --resume"

    def _evaluate_epoch(self) -> None:
        """End the epoch with its measures, unless the run is asked to stop: a later sitting then evaluates again."""
        progress = self.progress
        measured = self._measure("validation", self.data.validation)
        if measured is None:
            return
        progress.validation = measured
        loss = progress.loss_sum / self.order.rows
        self.record.write("epoch", epoch=progress.epoch + 1, loss=loss, validation=measured)
        progress.end_epoch()

    def _judge(self) -> dict[str, float] | None:
        """How the model does on the test rows, which choose nothing: so they are judged once, at the end.

        None when the run is asked to stop: a later sitting then has nothing left to do but this.
        """
        measured = self._measure("test", self.data.test)
        if measured:
            self.record.write("test", epoch=self.progress.epoch, **measured)
        return measured

    def _measure(self, name: str, rows: Rows) -> dict[str, float] | None:
        """The loss and the measures of the model as it is; None, and the run is stopped, when it is asked to."""
        with self.clock.during(Activity.EVALUATION):
            evaluated = evaluate(
                self.model,
                rows,
                split=self.balancer.split(len(rows)),
                loss=self.loss,
                threads=self.ranks.threads,
                stop=lambda: self.stop.made,
            )
        if evaluated is None:
            self.stopped = True
            return None
        loss, confusion = evaluated
        self._require_finite(f"loss on the {name} rows", loss, self.steps_done - 1)
        return {"loss": loss, **measures(confusion)}

    def _wants_checkpoint(self) -> bool:
        """Whether this step is to be kept: the last one of an epoch sooner than others, as an evaluation, which may
        take long, is about to come, and the machine may be lost."""
        patience = 60 * self.config.checkpoint_minutes
        if self.progress.step + 1 == self.order.steps:
            patience = min(patience, _EPOCH_CHECKPOINT_SECONDS)
        return time.monotonic() - self.saved_at > patience

    def _save(self) -> None:
        """Write a checkpoint, after a look at the latest loss: what it spoilt must not be kept.

        Only rank 0 writes and may fail at it, so a failure is said and not raised: the others would wait for ever.
        """
        self._heed(self.exchange.drain())
        self.save_due, start, before = False, time.monotonic(), self.saved_steps
        self.saved_at, self.saved_steps = start, self.steps_done
        if self.ranks.first:
            with self.clock.during(Activity.CHECKPOINTS):
                if not self._write_checkpoint(start):
                    self.saved_steps = before
            if self.progress.step < self.order.steps and not self.stopped:
                self.sitting.held_up(time.monotonic() - start)

    def _write_checkpoint(self, start: float) -> bool:
        state = {
            "format": checkpoint.FORMAT,
            "config": {**self.config.plain(), "epochs": self.epochs},
            "digest": self.data.digest,
            "global_batch": self.order.global_batch,
            "launchers": sorted(self.ranks.launchers),
            "progress": {**vars(self.progress), "seconds": self.sitting.seconds},
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state(),
        }
        try:
            path = checkpoint.save(self.config.output / CHECKPOINTS, state, steps=self.steps_done)
        except TrainingError as error:
            self._note(f"no checkpoint at step {self.steps_done}: {error}")
            return False
        self.record.write(
            "checkpoint",
            step=self.steps_done,
            file=f"{CHECKPOINTS}/{path.name}",
            seconds=round(time.monotonic() - start, 3),
        )
        return True

    def _rates_by(self, measured: Callable[..., list[float]], **what: Any) -> list[float]:
        with self.clock.during(Activity.RATES):
            return measured(self.compute, self.config, slowness=self.slowed.at(self.steps_done), **what)

    def _words(self) -> Words | None:
        """Which words of rows the model is to see."""
        config = self.config
        return Words(config.word_dropout, self.data.row_length, config.seed) if config.word_dropout else None

    def _model_settings(self) -> dict[str, Any]:
        return self.config.model_settings(words=len(self.data.vocabulary) + FIRST_WORD, outputs=self.loss.outputs)

    def _note(self, text: str) -> None:
        """Say what went wrong without ending the run, which the first rank knows."""
        if self.ranks.first:
            say(text)
            self.record.write("note", text=text)

    def _record_start(self) -> None:
        names = self.ranks.gather(self.ranks.device_name)
        self.record.write(
            "start",
            config=self.config.plain(),
            world_size=self.ranks.size,
            devices=names,
            rows={name: len(getattr(self.data, name)) for name in ("training", "validation", "test")},
            digest=self.data.digest,
            global_batch=self.order.global_batch,
            epochs=self.epochs,
            steps=self.steps,
            from_step=self.steps_done,
            own_rates=self.sitting.rates,
            precision=self.precision,
        )
        losses = [lost for lost in self.ranks.gather(faults.lost_before()) if lost]
        if losses:
            self.record.write("note", text=f"{faults.first(losses).short}; going on from step {self.steps_done}")
        if self.order.global_batch > self.order.rows:
            self.notes.append(
                f"the global batch of {self.order.global_batch} rows is larger than the {self.order.rows} training "
                "rows, so that every step takes all of them"
            )
        for note in self.notes:
            self._note(note)

    def _bar(self) -> "tqdm[Any]":
        return tqdm(
            total=self.epochs * self.order.rows,
            initial=self.progress.rows_seen,
            unit=" rows",
            unit_scale=True,
            disable=None if self.ranks.first else True,  # None: shown where stderr is a terminal
        )

    def _summary(self, tested: dict[str, float] | None) -> dict[str, Any]:
        """`tested`: the measures on the test rows; None of a run that was stopped."""
        return {
            **{name: tested[name] if tested else None for name in _MEASURES},
            **self.sitting.summary(self.ranks, self.laps),
            "rows_seen": self.progress.rows_seen,
            "rows": self.order.rows,
            "epochs": self.epochs,
            "validation": self.progress.validation,
            "stopped": self.stopped,
            "steps": self.steps_done,
            "global_batch": self.order.global_batch,
            "world_size": self.ranks.size,
            "split": self.balancer.split(self.order.size(0)).tolist(),
            "precision": self.precision,
            "positive_weight": self.loss.positive_weight,
            "digest": self.data.digest,
        }

    def _save_model(self, tested: dict[str, float]) -> None:
        save_model(
            self.config.output / MODEL,
            name=self.config.model,
            settings=self._model_settings(),
            loss=self.loss.plain(),
            state={name: tensor.cpu() for name, tensor in self.model.state_dict().items()},
            vocabulary=self.data.vocabulary,
            stopwords=self.data.stopwords,
            row_length=self.data.row_length,
            about={
                "dataset": self.data.digest,
                "epoch": self.progress.epoch,
                "test": tested,
                "rating_steps": self.data.rating_steps,
                "rating_fraction": self.data.rating_fraction,
            },
        )

    @property
    def steps_done(self) -> int:
        """Of the whole run, over all sittings."""
        return self.progress.epoch * self.order.steps + self.progress.step
