"""A training run from beginning to end, the same on every rank.

Per step: the global batch of this step (order.py), cut over the ranks (balance.py), each rank's part (compute.py), one
all-reduce (exchange.py), one step of the optimiser. What ranks must agree on (the split, when to stop or to save,
which epoch was best) follows from what the all-reduce brought. The easy mistake is to let one rank decide by what
only it knows, such as its clock: the others would wait for it for ever.

What a result depends on: the data, the settings, the seed. The number of ranks, the splits, and interruptions change
it by no more than the order of floating-point sums: dropout, too, goes by seed, step and row (dropout.py).
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from corpus.counted import plural
from corpus.text import FIRST_WORD
from trainer import checkpoint, faults, memory, models, precision, start
from trainer.accounts import Accounts
from trainer.balance import balancer, deal
from trainer.clock import ORDER, UPDATE, Clock, laps_of
from trainer.compute import Compute
from trainer.config import Slowed, TrainConfig
from trainer.data import Data
from trainer.errors import TrainingError
from trainer.evaluate import evaluate
from trainer.exchange import MOST_WORDS, Exchange, Report
from trainer.files import CHECKPOINTS, MODEL, RECORD, SUMMARY, write_json
from trainer.losses import Loss
from trainer.metrics import measures
from trainer.optimise import Optimiser, learning_rate
from trainer.order import Order
from trainer.predict import save_model
from trainer.progress import Progress
from trainer.ranks import Ranks, StopRequest
from trainer.rate import first_rates, own_rates
from trainer.record import Record, Thinning, say

_MEASURES = ("accuracy", "balanced_accuracy", "f1_positive", "f1_negative", "majority")


def train(config: TrainConfig, ranks: Ranks) -> dict[str, Any]:
    """Train, and return the content of summary.json. Raises TrainingError, the same on all ranks, when it cannot."""
    with StopRequest() as stop, memory.needed(ranks.device):
        data = start.data(config, ranks)
        run = _Run(config, ranks, data, stop)
        with run.record:
            return run.train()


class _Run:
    def __init__(self, config: TrainConfig, ranks: Ranks, data: Data, stop: StopRequest) -> None:
        self.config, self.ranks, self.data, self.stop = config, ranks, data, stop
        saved, self.notes = start.saved(config, ranks, data.digest)
        self.order = Order(
            rows=len(data.training),
            global_batch=saved["global_batch"] if saved else config.batch_for(ranks.size),
            seed=config.seed,
        )
        with ranks.agreement():
            if ranks.size > self.order.size(0):
                raise TrainingError(
                    f"{ranks.size} ranks cannot share a global batch of {plural(self.order.size(0), 'row')}; "
                    f"raise --global-batch to at least {ranks.size}, or start fewer ranks"
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
        self.optimiser = Optimiser(self.model.parameters(), config)
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
            laps=self.laps,
        )
        self.exchange = Exchange(self.model, laps=self.laps, clip_norm=config.clip_norm, bits=config.gradient_bits)
        first, table = self.order.batch(0, 0), self.model.embedding.num_embeddings
        self.by_word = ranks.size > 1 and len(data.training.ids(first, table)) <= MOST_WORDS * table
        self.clock, self.accounts = Clock(), Accounts(ranks.size)
        self.rows_before, self.seconds_before = self.progress.rows_seen, self.progress.seconds
        self.stopped = self.save_due = False
        self.saved_at, self.saved_steps = time.monotonic(), self.steps_done if saved else None
        self.rates = self._rates_by(first_rates, total=self.order.size(0))
        with ranks.agreement():
            try:
                self.balancer = balancer(
                    config.balance,
                    np.array(self.rates),
                    every=config.rebalance_every,
                    steps_per_epoch=self.order.steps,
                    total=self.order.size(0),
                )
            except ValueError as error:
                raise TrainingError(f"--balance {config.balance}: {error}") from error
        self.rows_of_ranks = np.zeros(ranks.size, dtype=np.int64)  # in this sitting
        self.names, self.pieces = ranks.gather(faults.who(ranks.rank)), np.zeros(ranks.size, dtype=np.int64)
        self.thinning = Thinning(config.record_every)
        with ranks.agreement():
            self.record = self._open_output(fresh=not saved)

    def train(self) -> dict[str, Any]:
        self._record_start()
        faults.begun()
        with self._bar() as self.bar:
            while self.progress.epoch < self.epochs and not self.stopped:
                self._train_epoch()
                if not self.stopped:
                    self._evaluate_epoch()
        self._save()
        self.laps.finish()
        if not self.stopped:
            again = self._rates_by(own_rates, split=self.balancer.split(self.order.size(0)))
            self.rates = [max(pair) for pair in zip(self.rates, again, strict=True)]
        summary = self._summary()
        if self.ranks.first:
            if not self.stopped:
                self._save_model()
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
        """Train to the end of the epoch, and keep that: an evaluation may take long, and the machine may be lost."""
        self.clock.go_on()
        while self.progress.step < self.order.steps and not self.stopped:
            with faults.at(f"at step {self.steps_done + 1}"):
                self._step()
            if self.save_due:
                self._save()
        self._heed(self.exchange.drain())
        if self.saved_steps != self.steps_done and not self.stopped:
            self._save()
        self.clock.pause()

    def _step(self) -> None:
        rank, size = self.ranks.rank, self.order.size(self.progress.step)
        split = self.balancer.split(size)  # (ranks,)
        self.rows_of_ranks += split
        self.laps.begin(int(split[rank]))
        rows = self.order.batch(self.progress.epoch, self.progress.step)  # (global batch,)
        own = rows[deal(self.data.training.lengths[rows], split, rank)]  # (local batch,)
        words = self.data.training.ids(rows, self.model.embedding.num_embeddings) if self.by_word else None
        self.optimiser.clear()
        self.laps.end_of(ORDER)
        loss = self.compute(own, size, self.steps_done, self.slowed.at(self.steps_done))
        report = self.exchange.reduce(
            step=self.steps_done,
            size=size,
            words=words,
            loss=loss,
            piece=self.compute.fitting,
            stop=self.stop.made,
            save=self.ranks.first and time.monotonic() - self.saved_at > 60 * self.config.checkpoint_minutes,
        )
        self.optimiser.step(learning_rate(self.config, self.steps_done, self.steps, self.order.size(0)))
        self.laps.end_of(UPDATE)
        self.progress.step += 1
        self.progress.rows_seen += size
        self.bar.update(size)
        self._heed(report)

    def _heed(self, report: Report | None) -> None:
        """Act on what all ranks know of a step; called at the same points by all, so that they stay in agreement."""
        if report is None:
            return
        for what, value in (("loss", report.loss), ("gradient's length", report.norm)):
            self._require_finite(what, value, report.step)
        self.progress.loss_sum += report.loss * report.size
        self.balancer.observe(report.rows, report.seconds)
        self.accounts.add(report.seconds, report.reducing)
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
                rows_per_second=self._rate(),
                split=report.rows.tolist(),
                compute_seconds=report.seconds.tolist(),
            )
            self.bar.set_postfix_str(f"loss {report.loss:.3f}, {self._share_of_ideal():.0%} of ideal")

    def _require_finite(self, what: str, value: float, step: int) -> None:
        if not np.isfinite(value):
            way = "" if self.precision == "float32" else ", or take --precision float32"
            raise TrainingError(
                f"the {what} is {value} at step {step + 1}; lower --learning-rate, or set --clip-norm{way}"
                + ("" if self.saved_steps is None else f", and go on from step {self.saved_steps} with --resume")
            )

    def _evaluate_epoch(self) -> None:
        """End the epoch with its measures, unless the run is asked to stop: a later sitting then evaluates again."""
        progress, results = self.progress, {}
        for name, rows in (("validation", self.data.validation), ("test", self.data.test)):
            evaluated = evaluate(
                self.model,
                rows,
                split=self.balancer.split(len(rows)),
                loss=self.loss,
                stop=lambda: self.stop.made,
            )
            if evaluated is None:
                self.stopped = True
                return
            loss, confusion = evaluated
            self._require_finite(f"loss on the {name} rows", loss, self.steps_done - 1)
            results[name] = {"loss": loss, **measures(confusion)}
        if is_best := progress.is_best(results):
            state = {name: tensor.detach().to("cpu", copy=True) for name, tensor in self.model.state_dict().items()}
            progress.best = {"epoch": progress.epoch + 1, **results, "state": state}
        loss = progress.loss_sum / self.order.rows
        self.record.write("epoch", epoch=progress.epoch + 1, loss=loss, **results, best=is_best)
        progress.end_epoch()

    def _save(self) -> None:
        """Write a checkpoint, after a look at the latest loss: what it spoilt must not be kept.

        Only rank 0 writes and may fail at it, so a failure is said and not raised: the others would wait for ever.
        """
        self._heed(self.exchange.drain())
        self.save_due, self.saved_at, start = False, time.monotonic(), time.monotonic()
        self.saved_steps = self.steps_done
        if not self.ranks.first:
            return
        state = {
            "format": checkpoint.FORMAT,
            "config": self.config.plain(),
            "digest": self.data.digest,
            "global_batch": self.order.global_batch,
            "progress": {**vars(self.progress), "seconds": self.seconds_before + self.clock.seconds},
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state(),
        }
        try:
            path = checkpoint.save(self.config.output / CHECKPOINTS, state, steps=self.steps_done)
        except TrainingError as error:
            self._note(f"no checkpoint at step {self.steps_done}: {error}")
            return
        self.record.write(
            "checkpoint",
            step=self.steps_done,
            file=f"{CHECKPOINTS}/{path.name}",
            seconds=round(time.monotonic() - start, 3),
        )

    def _rates_by(self, measured: Callable[..., list[float]], **what: Any) -> list[float]:
        return measured(
            self.model,
            self.data.training,
            self.config,
            loss=self.loss,
            slowness=self.slowed.at(self.steps_done),
            **what,
        )

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
            own_rates=self.rates,
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

    def _summary(self) -> dict[str, Any]:
        phases = self.ranks.gather(dict(self.laps.sums))
        best = self.progress.best if not self.stopped else None
        seconds = self.seconds_before + self.clock.seconds
        measured = best["test"] if best else dict.fromkeys(_MEASURES)
        return {
            **{name: measured[name] for name in _MEASURES},
            "samples_per_second": self.progress.rows_seen / seconds,
            "share_of_ideal": self._share_of_ideal(),
            "lost": self._lost([ranks_phases.get(ORDER, 0.0) for ranks_phases in phases]),
            "profile": phases,
            "seconds": seconds,
            "rows_seen": self.progress.rows_seen,
            "rows": self.order.rows,
            "epochs": self.epochs,
            "best_epoch": best["epoch"] if best else None,
            "validation": best["validation"] if best else None,
            "stopped": self.stopped,
            "steps": self.steps_done,
            "global_batch": self.order.global_batch,
            "world_size": self.ranks.size,
            "split": self.balancer.split(self.order.size(0)).tolist(),
            "rows_of_ranks": self.rows_of_ranks.tolist(),
            "own_rates": self.rates,
            "precision": self.precision,
            "positive_weight": self.loss.positive_weight,
            "digest": self.data.digest,
        }

    def _lost(self, ordering: list[float]) -> dict[str, float] | None:
        share = self._share_of_ideal()
        if share is None:
            return None
        return self.accounts.lost(
            seconds=self.clock.seconds, share=share, rates=self.rates, ordering=sum(ordering) / len(ordering)
        )

    def _save_model(self) -> None:
        best = self.progress.best
        assert best is not None  # every epoch was evaluated
        save_model(
            self.config.output / MODEL,
            name=self.config.model,
            settings=self._model_settings(),
            loss=self.loss.plain(),
            state=best["state"],
            vocabulary=self.data.vocabulary,
            stopwords=self.data.stopwords,
            row_length=self.data.row_length,
            about={
                "dataset": self.data.digest,
                "epoch": best["epoch"],
                "test": best["test"],
                "rating_steps": self.data.rating_steps,
                "rating_fraction": self.data.rating_fraction,
            },
        )

    @property
    def steps_done(self) -> int:
        """Of the whole run, over all sittings."""
        return self.progress.epoch * self.order.steps + self.progress.step

    def _rate(self) -> float | None:
        """Rows a second of training in this sitting; None before its first step."""
        rows = self.progress.rows_seen - self.rows_before
        return rows / self.clock.seconds if rows else None

    def _share_of_ideal(self) -> float | None:
        rate = self._rate()
        return None if rate is None else rate / sum(self.rates)
