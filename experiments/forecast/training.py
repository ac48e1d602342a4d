"""The time of a training from the rates of its ranks: each step takes as long as its slowest rank."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from common.display import plural
from common.errors import ExperimentError
from corpus.dataset_settings import DEFAULT
from corpus.rules import VALIDATION_SHARE
from experiments.forecast.rates import Rates
from trainer.balancing.balancers import parse_balance
from trainer.balancing.split import equal_finish_split, finish_time, proportional_split
from trainer.options.presets import GLOBAL_BATCH
from trainer.options.run_options import seconds_between_checkpoints
from trainer.order import steps_per_epoch


@dataclass(frozen=True, kw_only=True)
class TrainingWork:
    """What is to be trained."""

    rows: int
    """To train on."""
    validation: int
    """Rows evaluated after each epoch."""
    test: int
    """Rows evaluated at the end."""
    epochs: int
    global_batch: int
    balance: str = "steps"
    """As `shoal train` takes it: how the rows of a step are split."""
    checkpoint_minutes: float = 0.0
    """As `shoal train` takes it."""
    row_bytes: float
    """Of a row in the dataset's file."""

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


def work_on(rows: int, epochs: int, global_batch: int | None, row_bytes: float) -> TrainingWork:
    """The training on a dataset of `rows` rows of so many bytes, split as datasets are by default."""
    test = round(DEFAULT.test_share * rows)
    validation = max(1, int((rows - test) * VALIDATION_SHARE))
    return TrainingWork(
        rows=max(1, rows - test - validation),
        validation=validation,
        test=test,
        epochs=epochs,
        global_batch=global_batch or GLOBAL_BATCH,
        row_bytes=row_bytes,
    )


def predict_training(work: TrainingWork, rates: Rates) -> TrainingTime:
    """The seconds of a training by ranks with these rates. Raises ExperimentError for shares of other ranks."""
    steps = steps_per_epoch(work.rows, work.global_batch)
    last = work.rows - (steps - 1) * work.global_batch
    computing = sum(
        epochs * ((steps - 1) * _computing(rates, work.global_batch, shares) + _computing(rates, last, shares))
        for epochs, shares in _shares(work, len(rates.ranks))
    )
    others = work.epochs * ((steps - 1) * rates.others.seconds(work.global_batch) + rates.others.seconds(last))
    evaluated = work.epochs * work.validation + work.test
    pause = seconds_between_checkpoints(work.checkpoint_minutes, rates.checkpoint)
    return TrainingTime(
        around=rates.around,
        loading=rates.loading.seconds(work.every_row),
        computing=computing,
        others=others,
        evaluation=evaluated * rates.evaluation,
        checkpoints=rates.checkpoint * (1 + math.floor((computing + others) / pause)),
    )


def _shares(work: TrainingWork, ranks: int) -> list[tuple[float, Sequence[float] | None]]:
    """Numbers of epochs, and the shares of the ranks in their steps; None for shares by speed."""
    shares, every = parse_balance(work.balance)
    if shares and len(shares) != ranks:
        raise ExperimentError(
            f"--balance {work.balance} has {plural(len(shares), 'share')} for {plural(ranks, 'rank')}; give one each"
        )
    if shares or work.balance == "off":
        return [(work.epochs, shares or [1.0] * ranks)]
    equal = min(work.epochs, every or 0.0)  # until speeds are known
    return [(equal, [1.0] * ranks), (work.epochs - equal, None)]


def _computing(rates: Rates, rows: int, shares: Sequence[float] | None) -> float:
    """Seconds of the slowest rank in a step of so many rows."""
    fixed, per_row = np.array(rates.ranks, dtype=np.float64).T.copy()
    split = equal_finish_split(rows, fixed, per_row) if shares is None else proportional_split(rows, np.array(shares))
    return finish_time(split, fixed, per_row)
