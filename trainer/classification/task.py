"""Task that trains a classifier of texts from rows of word ids with a label or a rating."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shoal_balance import IntArray, Lengths, proportional_split
from torch import Tensor, nn

from common.errors import TrainingError
from corpus.text import FIRST_WORD, word_ids
from trainer.classification import models
from trainer.classification.calibration import MOST_LOGITS, calibrate
from trainer.classification.data import TextData, load_data, place_parts
from trainer.classification.evaluate import evaluate
from trainer.classification.losses import CROSS_ENTROPY, MSE, SOFTMAX, Loss
from trainer.classification.metrics import (
    CALIBRATION,
    MOST_CLASSES,
    TWO_CLASSES,
    accuracy_interval,
    measures,
    measures_for,
)
from trainer.classification.model_folder import write_model
from trainer.classification.models.classifier import Classifier
from trainer.classification.options import ClassifierOptions
from trainer.classification.rows import RaggedRows, Rows, WordDropout
from trainer.classification.start_vectors import describe_start_vectors, find_start_vectors, set_start_vectors
from trainer.classification.strength import FEW_ROWS, base_outputs, fold_strength
from trainer.classification.trained_model import TrainedModel
from trainer.clock import ROWS, StepTimer
from trainer.computing import dropout, precision
from trainer.computing.gradients import GradientComputer
from trainer.computing.threads import Threads
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.output.run_files import MODEL
from trainer.registry import Workload
from trainer.task import TEST, Task

_MISTAKES, _MOST_MISTAKES = 10, 200
"""Largest number of wrong test rows that are recorded for a class, and about the largest for all classes."""


class Classification(Task[TextData]):
    """Task that learns to classify texts as positive or negative (from labels or ratings), or into named classes."""

    @staticmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int, stop: Callable[[], bool]) -> TextData:  # noqa: ARG004
        options: ClassifierOptions = config.options
        data = load_data(config.data, learned=options.rows_to_learn, cache=config.cache, memory=memory)
        return place_parts(data.cut_to(options.row_length), ranks.device)

    @staticmethod
    def resolve_config(config: TrainConfig, ranks: Ranks, data: TextData) -> tuple[TrainConfig, TextData, list[str]]:
        rows = data.training
        size = Workload(on_gpus=ranks.device.type != "cpu", rows=len(rows), words=float(rows.lengths.mean()))
        loss = _loss(config.options, data, config.data)
        config = config.with_step_rows(size)
        options, data = models.kind(config.model).fit_settings(config.options, data, loss)
        if data.ngrams and len(rows) < FEW_ROWS:
            strength, batch = 1.0, config.optimisation.batch_for(ranks.world_size)
            with ranks.agreement(loading=True):
                if ranks.is_first:
                    strength = fold_strength(config, data, loss, batch=batch, device=ranks.device)
            data = replace(data, ngrams=data.ngrams._replace(strength=ranks.broadcast(strength)))
        config = replace(config, options=options)
        values = config.values()
        if values.get("embeddings") is None:
            return config, data, []
        columns, notes = values["embedding"], []
        with ranks.agreement(loading=True):
            if ranks.is_first:  # the other ranks receive the first rank's model
                start = find_start_vectors(options.embeddings, data, size=columns)
                data, columns = replace(data, start=start), start.vectors.shape[1]
                notes = [describe_start_vectors(options.embeddings, data, start)]
                replace(options, embedding=columns)  # raises TrainingError if the vectors have too many dimensions
        return config.changed(embedding=ranks.broadcast(columns)), data, notes

    def __init__(self, config: TrainConfig, ranks: Ranks, data: TextData) -> None:
        options: ClassifierOptions = config.options
        self._config, self._options, self._ranks, self._data = config, options, ranks, data
        self._loss = _loss(options, data, config.data)
        self._notes: list[str] = []
        self.model: Classifier = models.build(config.model, self._settings()).to(ranks.device)
        self._has_strength = self.model.fits_strength and len(data.training) < FEW_ROWS
        if data.ngrams:
            constant = self._loss.constant_outputs(data.training.labels, data.training.ratings)
            base = base_outputs(options.positive_weight, self._loss, data.training)
            self.model.set_ngrams(data.ngrams, constant, base)
        self.model.set_vocabulary(data.vocabulary)
        if data.start:
            set_start_vectors(self.model.word_vectors, data.start)
        self.tables, self.sparse_tables = self.model.tables, self.model.sparse_tables
        self.row_rates = self.model.row_rates
        with ranks.agreement():
            self.precision = precision.choose(config.precision, ranks.gather(precision.capability(ranks.device)))
        self.model.precision = precision.NAMES[self.precision]
        share = 0.0 if self.model.reads_whole_texts else config.values().get("word_dropout", 0.0)
        self._words = WordDropout(share, data.row_length, config.seed) if share else None

    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        return text_gradients(
            self.model,
            self._data.training,
            loss=self._loss,
            device=self._ranks.device,
            seed=self._config.seed,
            words=self._words,
            timer=timer,
            threads=self._ranks.threads,
        )

    def lengths(self, rows: IntArray) -> Lengths:
        return self._data.training.lengths[rows]

    def touched_rows(self, rows: IntArray) -> tuple[IntArray, ...]:
        return tuple(self._data.training.ids(rows, len(table)) for table in self.tables)

    def evaluate(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, Any] | None:
        if part == TEST and not self._calibrate(split, stop):
            return None
        rows: Rows = getattr(self._data, part)
        most = max(1, min(_MISTAKES, _MOST_MISTAKES // self._loss.classes)) if part == TEST else 0
        evaluation = evaluate(
            self.model, rows, split=split, loss=self._loss, threads=self._ranks.threads, stop=stop, mistakes=most
        )
        if evaluation is None:
            return None
        metrics = {"loss": evaluation.loss, **measures(evaluation.confusion)}
        if part != TEST:
            return metrics
        names = self._data.classes or TWO_CLASSES
        return {
            **metrics,
            "accuracy_interval": list(accuracy_interval(evaluation.confusion)),
            "log_loss": evaluation.log_loss,
            "uncalibrated_log_loss": evaluation.uncalibrated,
            "temperature": self._loss.temperature,
            "threshold": self._loss.threshold,
            "confusion": evaluation.confusion.plain(names),
            "mistakes": [
                {
                    "class": names[each.label],
                    "prediction": names[each.prediction],
                    "probability": each.probability,
                    "words": self._data.excerpt(rows, each.row),
                }
                for each in evaluation.mistakes
            ],
        }

    def _calibrate(self, split: IntArray, stop: Callable[[], bool]) -> bool:
        """Fit temperature and threshold on the validation rows. Return False if the run was asked to stop.

        `split` (ranks,): ranks share the rows in this proportion. A resumed run repeats the fit before the test, so
        checkpoints need not contain the two values.
        """
        rows = self._data.validation[: max(1, MOST_LOGITS // self._loss.classes)]
        logits = torch.zeros(len(rows), self._loss.classes)
        if len(rows):
            evaluation = evaluate(
                self.model,
                rows,
                split=proportional_split(len(rows), split.astype(np.float64)),
                loss=self._loss,
                threads=self._ranks.threads,
                stop=stop,
                logits=logits,
            )
            if evaluation is None:
                return False
        labels = torch.from_numpy(rows.labels.astype(np.int64))
        fitted, note = calibrate(self._loss, logits, labels, self._options.metric, is_scaled=self._has_strength)
        # All ranks use the values of the first rank, because results of different processors can differ slightly.
        temperature, threshold = self._ranks.broadcast((fitted.temperature, fitted.threshold))
        self._loss = replace(self._loss, temperature=temperature, threshold=threshold)
        self._notes = [note] if note else []
        return True

    def summary_measures(self, tested: Mapping[str, Any] | None) -> dict[str, Any]:
        names = (*measures_for(self._loss.classes), *CALIBRATION, "accuracy_interval", "confusion")
        return {name: tested[name] if tested else None for name in names}

    def closing_notes(self) -> list[str]:
        return self._notes

    def summary_settings(self) -> dict[str, Any]:
        strength = round(float(self.model.strength), 2) if self._has_strength else None
        return {"precision": self.precision, "positive_weight": self._loss.positive_weight, "strength": strength}

    def save(self, output: Path, *, epoch: int, tested: Mapping[str, Any]) -> None:
        data = self._data
        reads_all = self.model.reads_whole_texts and isinstance(data.training, RaggedRows)
        model = TrainedModel(
            name=self._config.model,
            settings=self._settings(),
            classifier=self.model,
            loss=self._loss,
            ids=word_ids(data.vocabulary),
            stopwords=data.stopwords,
            row_length=None if reads_all else data.row_length,
            words=data.words,
            classes=data.classes,
            about={
                "dataset": data.digest,
                "epoch": epoch,
                "test": {name: value for name, value in tested.items() if name != "mistakes"},
                "rating_steps": data.rating_steps,
                "rating_fraction": data.rating_fraction,
            },
        )
        write_model(output / MODEL, model)

    def _settings(self) -> dict[str, Any]:
        words = len(self._data.vocabulary) + FIRST_WORD
        return self._options.model_settings(words=words, outputs=self._loss.outputs)


def _loss(options: ClassifierOptions, data: TextData, path: Path) -> Loss:
    """Return the loss of a run on `data`, read from `path`. Raises TrainingError if options contradict the classes."""
    classes = len(data.classes)
    if classes <= 2:
        weight = options.positive_weight or data.balancing_weight()
        return Loss(kind=options.loss, scale=data.scale, positive_weight=weight)
    if classes > MOST_CLASSES:
        raise TrainingError(
            f"{path} has {classes:,} classes, but training supports at most {MOST_CLASSES:,}; leave out the "
            "texts of rare classes, or merge classes"
        )
    if options.loss == MSE:
        raise TrainingError(
            f"--loss is {options.loss}, which supports only two classes, but {path} has {classes}; "
            f"use --loss {CROSS_ENTROPY}"
        )
    if options.positive_weight not in (None, 1):
        raise TrainingError(
            f"--positive-weight is {options.positive_weight}, which applies only to two classes, but {path} has "
            f"{classes}; leave out --positive-weight, or use 1"
        )
    return Loss(kind=SOFTMAX, scale=data.scale, positive_weight=1.0, classes=classes)


def text_gradients(
    model: Classifier,
    rows: Rows,
    *,
    loss: Loss,
    device: torch.device,
    seed: int = 0,
    words: WordDropout | None = None,
    timer: StepTimer,
    threads: Threads | None = None,
) -> GradientComputer:
    """Return a GradientComputer that computes the gradients of `loss` for rows of word ids.

    `seed`: the seed of dropout of values and of words. `words`: word dropout, if any. A model that reads whole texts
    ignores `words`.
    """
    whole = model.reads_whole_texts
    keyed = words is not None or dropout.drops(model)

    def loss_of(model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:
        keys = dropout.keys(seed, step, numbers) if keyed else None
        if whole:
            batch = rows.whole_batch(numbers, device, keys=keys)
        else:
            batch = rows.batch(numbers, device, keys=keys, words=words)
        timer.end_phase(ROWS)
        outputs: Tensor = model(batch.tokens, batch.lengths, batch.keys)  # (n, outputs)
        return loss.sum(outputs, batch.labels, batch.ratings)

    return GradientComputer(
        model,
        loss_of,
        rows=len(rows),
        sparse_tables=model.sparse_tables,
        precision=model.precision,
        device=device,
        timer=timer,
        threads=threads,
        direct=model.direct_gradients(rows, loss, seed=seed, device=device),
    )
