"""Calibration: short runs of several batches, whose records show how fast the ranks of a machine are.

A prediction (experiments/forecast) needs what a step costs besides its rows, and so more than one size of a step. Do
not calibrate with rows of another length than those that are to be trained on, nor beside other programs.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from bootstrap.interrupt import Interrupt
from bootstrap.progress import Bars
from bootstrap.training.places.place import Place
from bootstrap.training.sources.dataset import DatasetSource, opened_dataset
from bootstrap.training.train import train
from common.display import plural
from common.errors import ShoalError
from corpus.dataset import Dataset, RowBlock, write_dataset
from corpus.dataset_settings import DEFAULT
from corpus.layout import DATASET_NAME
from corpus.rules import VALIDATION_SHARE
from experiments.forecast.estimate import Estimate
from experiments.forecast.nodes import NODES_START
from experiments.forecast.rates import Node
from trainer.config import TrainConfig

_BATCHES, _BATCHES_OF_NODES = (64, 256, 1024), (256, 1024, 4096)
"""Global batches of the runs, on this machine and on nodes: of a smaller step a GPU shows nothing but the fixed
part."""
_RUN = Estimate(30.0, 60.0, 180.0)
"""Seconds of a run on nodes, with its data's way there and its results' way back; not measured."""
_STEPS = 24
"""Steps of an epoch: 23 full ones, and one with a quarter of the rows."""
_SECONDS = 6.0
"""What a run should take, beside its beginning and its end."""
_MOST_EPOCHS = 60
_FEWEST_ROWS = 500
_VOCABULARY = 10_000


class BriefDataset(NamedTuple):
    """The dataset of a run."""

    global_batch: int
    path: Path
    rows: int
    """To train on."""


@dataclass(frozen=True, kw_only=True)
class CalibrationPrice:
    """What a calibration on nodes is expected to take."""

    nodes: list[Node]
    seconds: Estimate
    dollars: Estimate | None
    """For the nodes, on demand; None where a price is not known."""


def calibration_price(place: Place) -> CalibrationPrice:
    """What a calibration at a place with nodes takes. Raises ShoalError where it has none."""
    nodes = place.nodes()
    seconds = NODES_START.plus(_RUN.times(len(_BATCHES_OF_NODES)))
    return CalibrationPrice(nodes=nodes, seconds=seconds, dollars=place.dollars(seconds, nodes))


def calibrate(config: TrainConfig, place: Place, *, data: str | None, bars: Bars) -> list[Path]:
    """Train briefly at a place, with the model and the ranks of `config`, on rows of the dataset `data`; returns the
    folders of the runs, in `config.output`. None: the newest dataset of the place, or whole texts of random words,
    as long as reviews, where it has none.

    Raises DataError for a dataset that cannot be used, TrainingError, and ShoalError for one with too few rows, and
    where the place is taken. Ctrl-C ends it.
    """
    batches = _BATCHES_OF_NODES if place.ranks is None else _BATCHES
    source = data or place.newest_dataset(bars)
    with brief_datasets(source, batches) as datasets, place.held(bars) as held:
        return train_briefly(config, datasets, held, bars)


def train_briefly(config: TrainConfig, datasets: Sequence[BriefDataset], place: Place, bars: Bars) -> list[Path]:
    """Train on each of the datasets; returns the folders of the runs."""
    folders, rate = [], None
    for batch, path, rows in datasets:
        epochs = 1 if rate is None else int(max(1, min(_MOST_EPOCHS, _SECONDS * rate / rows)))
        output = config.output / f"batch-{batch}"
        asked = replace(
            config,
            output=output,
            force=True,
            resume=False,
            global_batch=batch,
            epochs=epochs,
            preset=None,
        )
        bars.note(f"steps of {batch} rows")
        result = train(DatasetSource(str(path)), asked, place, bars)
        if result["stopped"]:
            raise Interrupt(signal.Signals[result.get("stopped_by", "SIGINT")])
        rate = result["samples_per_second"]
        folders.append(output)
    return folders


@contextmanager
def brief_datasets(source: str | None, batches: Sequence[int]) -> Iterator[list[BriefDataset]]:
    """A dataset for each global batch, until the end: the first rows of the one at an address, or else random rows.

    Raises DataError for a dataset that cannot be used, and ShoalError for one with too few rows.
    """
    with TemporaryDirectory() as name:
        made = []
        for batch in batches:
            rows = int((_STEPS - 0.75) * batch)
            path = Path(name) / str(batch) / DATASET_NAME
            path.parent.mkdir()
            if source is None:
                _write_random(path, rows)
            else:
                with opened_dataset(source) as dataset:
                    rows = _write_part(path, dataset, rows)
            if rows < _FEWEST_ROWS:
                raise ShoalError(
                    f"{source} has {plural(rows, 'row')} to train on, too few to measure by; give a larger one"
                )
            made.append(BriefDataset(batch, path, rows))
        yield made


def _whole(training: int) -> int:
    """The rows of a dataset's training split of which so many are left to train on."""
    rows = int(training / (1 - VALIDATION_SHARE))
    while rows - max(1, int(rows * VALIDATION_SHARE)) < training:
        rows += 1
    return rows


def _write_part(path: Path, dataset: Dataset, training: int) -> int:
    """Write the first rows of a dataset, `training` to train on if it has as many; returns how many these are."""
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


def _write_random(path: Path, training: int) -> None:
    """Write whole texts of random words, as frequent as words are."""
    generator = np.random.default_rng(0)
    write_dataset(
        path,
        train=_random_texts(generator, _whole(training)),
        test=_random_texts(generator, max(1, training // 10)),
        vocabulary=[f"w{number}" for number in range(_VOCABULARY)],
        settings=DEFAULT,
    )


def _random_texts(generator: np.random.Generator, count: int) -> RowBlock:
    """Ragged rows; 173 words a text on average, as `python -m benchmarks.likeness` has them of generated reviews."""
    lengths = (1 + generator.lognormal(4.6, 1.05, count)).astype(np.int64)
    tokens = _random_words(generator, (int(lengths.sum()),)).astype(np.uint32)
    return RowBlock(tokens, lengths, *_random_labels(generator, count))


def _random_words(generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return generator.zipf(1.3, shape) % _VOCABULARY + 2


def _random_labels(generator: np.random.Generator, count: int) -> tuple[Any, Any]:
    labels = generator.integers(0, 2, count).astype(np.uint8)
    return labels, 4 * labels + 1
