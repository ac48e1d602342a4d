"""The time of a training from the rates of its ranks: each step takes as long as its slowest rank."""

import math
from dataclasses import dataclass

import numpy as np

from corpus.rules import VALIDATION_SHARE
from corpus.settings import Settings
from experiments.prediction.rates import Rates
from trainer.balancing.split import equal_finish_split, finish_time, proportional_split
from trainer.order import steps_per_epoch
from trainer.presets import GLOBAL_BATCH


@dataclass(frozen=True, kw_only=True)
class TrainingWork:
    """What is to be trained."""

    rows: int
    """To train on."""
    validation: int
    """Rows judged after each epoch."""
    test: int
    """Rows judged at the end."""
    epochs: int
    global_batch: int
    balanced: bool = True
    """Whether ranks get rows by their speed; else all as many."""
    checkpoint_minutes: float = 5.0

    @property
    def every_row(self) -> int:
        """Of the dataset, as far as it is used."""
        return self.rows + self.validation + self.test


@dataclass(frozen=True, kw_only=True)
class TrainingTime:
    """Seconds of a training, by what they are spent on."""

    around: float
    """Starting processes, measuring rates, saving the model."""
    loading: float
    computing: float
    """The computing of each step's slowest rank."""
    others: float
    """The sum over the ranks, waits, and the optimiser."""
    evaluation: float
    checkpoints: float

    @property
    def training(self) -> float:
        """Of the steps."""
        return self.computing + self.others

    @property
    def all(self) -> float:
        """The sum."""
        return self.around + self.loading + self.training + self.evaluation + self.checkpoints


def work_on(rows: int, epochs: int, global_batch: int | None) -> TrainingWork:
    """The training on a dataset of `rows` rows, split as datasets are by default."""
    test = round(Settings().test_share * rows)
    validation = max(1, int((rows - test) * VALIDATION_SHARE))
    return TrainingWork(
        rows=max(1, rows - test - validation),
        validation=validation,
        test=test,
        epochs=epochs,
        global_batch=global_batch or GLOBAL_BATCH,
    )


def predict_training(work: TrainingWork, rates: Rates) -> TrainingTime:
    """The seconds of a training by ranks with these rates."""
    steps = steps_per_epoch(work.rows, work.global_batch)
    last = work.rows - (steps - 1) * work.global_batch
    computing = work.epochs * ((steps - 1) * _computing(work, rates, work.global_batch) + _computing(work, rates, last))
    others = work.epochs * ((steps - 1) * rates.others.seconds(work.global_batch) + rates.others.seconds(last))
    judged = work.epochs * work.validation + work.test
    minutes = (computing + others) / 60
    return TrainingTime(
        around=rates.around,
        loading=rates.loading.seconds(work.every_row),
        computing=computing,
        others=others,
        evaluation=judged * rates.evaluation,
        checkpoints=rates.checkpoint * (1 + math.floor(minutes / work.checkpoint_minutes)),
    )


def _computing(work: TrainingWork, rates: Rates, rows: int) -> float:
    """Seconds of the slowest rank in a step of so many rows."""
    fixed, per_row = np.array(rates.ranks, dtype=np.float64).T.copy()
    split = equal_finish_split(rows, fixed, per_row) if work.balanced else proportional_split(rows, np.ones(len(fixed)))
    return finish_time(split, fixed, per_row)
