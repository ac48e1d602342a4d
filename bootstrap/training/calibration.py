"""Calibration on this machine: short runs of several batches, whose records show how fast its ranks are.

A prediction (experiments/prediction) needs what a step costs besides its rows, and so more than one size of a step. Do
not calibrate with rows of another length than those that are to be trained on, nor beside other programs.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bootstrap.errors import ShoalError
from bootstrap.progress import Bars
from bootstrap.training.local import train_locally
from corpus.dataset import RowBlock, open_dataset, write_dataset
from corpus.display import plural
from corpus.rules import VALIDATION_SHARE
from corpus.settings import Settings
from trainer.config import TrainConfig

_BATCHES = (64, 256, 1024)
"""Global batches of the runs."""
_STEPS = 24
"""Steps of an epoch: 23 full ones, and one with a quarter of the rows."""
_SECONDS = 6.0
"""What a run should take, beside its beginning and its end."""
_MOST_EPOCHS = 60
_FEWEST_ROWS = 500
_VOCABULARY, _ROW_LENGTH = 10_000, 100


def calibrate_locally(config: TrainConfig, *, data: Path | None, ranks: int, bars: Bars) -> list[Path]:
    """Train briefly with `ranks` processes, with the model and the ranks of `config`, on rows of `data` (None: rows of
    random words, as long as those of reviews); returns the folders of the runs, in `config.output`.

    Raises DataError for a dataset that cannot be used, TrainingError, and ShoalError for one with too few rows.
    """
    folders, rate = [], None
    with TemporaryDirectory() as name:
        for batch in _BATCHES:
            rows = int((_STEPS - 0.75) * batch)
            path = Path(name) / f"{batch}.h5"
            have = _write_part(path, data, rows) if data is not None else _write_random(path, rows)
            if have < _FEWEST_ROWS:
                raise ShoalError(
                    f"{data} has {plural(have, 'row')} to train on, too few to measure by; give a larger one"
                )
            epochs = 1 if rate is None else int(max(1, min(_MOST_EPOCHS, _SECONDS * rate / have)))
            output = config.output / f"batch-{batch}"
            asked = replace(
                config,
                data=path,
                output=output,
                force=True,
                resume=False,
                global_batch=batch,
                epochs=epochs,
                preset=None,
            )
            bars.note(f"steps of {batch} rows")
            rate = train_locally(asked, ranks=ranks, bars=bars)["samples_per_second"]
            folders.append(output)
    return folders


def _whole(training: int) -> int:
    """The rows of a dataset's training split of which so many are left to train on."""
    rows = int(training / (1 - VALIDATION_SHARE))
    while rows - max(1, int(rows * VALIDATION_SHARE)) < training:
        rows += 1
    return rows


def _write_part(path: Path, source: Path, training: int) -> int:
    """Write the first rows of a dataset, `training` to train on if it has as many; returns how many these are."""
    with open_dataset(source) as dataset:
        rows = min(_whole(training), len(dataset.train))
        write_dataset(
            path,
            train=dataset.train.rows(0, rows),
            test=dataset.test.rows(0, min(len(dataset.test), max(1, rows // 10))),
            vocabulary=dataset.vocabulary,
            settings=dataset.settings,
            stopwords=dataset.stopwords,
        )
    return rows - max(1, int(rows * VALIDATION_SHARE))


def _write_random(path: Path, training: int) -> int:
    """Write rows of random words, as frequent as words are, and as many in a row as reviews have without stopwords."""
    generator = np.random.default_rng(0)
    train, test = _random_rows(generator, _whole(training)), _random_rows(generator, max(1, training // 10))
    vocabulary = [f"w{number}" for number in range(_VOCABULARY)]
    settings = Settings(row_length=_ROW_LENGTH, vocabulary_size=_VOCABULARY)
    write_dataset(path, train=train, test=test, vocabulary=vocabulary, settings=settings, stopwords=frozenset())
    return training


def _random_rows(generator: np.random.Generator, count: int) -> RowBlock:
    lengths = np.minimum(1 + generator.lognormal(3.4, 0.9, count), _ROW_LENGTH).astype(np.uint16)
    words = generator.zipf(1.3, (count, _ROW_LENGTH)) % _VOCABULARY + 2
    tokens = np.where(np.arange(_ROW_LENGTH) < lengths[:, None], words, 0).astype(np.uint16)
    labels = generator.integers(0, 2, count).astype(np.uint8)
    return RowBlock(tokens, lengths, labels, 4 * labels + 1)
