"""What a training on this machine is predicted to take, by runs that were made before (experiments/prediction)."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from corpus.dataset import Dataset, open_dataset
from corpus.display import plural
from corpus.options import flag
from corpus.reading.s3 import is_s3
from corpus.reading.storage import open_range
from corpus.rules import VALIDATION_SHARE
from experiments.errors import ExperimentError
from experiments.prediction.estimate import Estimate
from experiments.prediction.rates import Rates, read_rates
from experiments.prediction.training import TrainingWork, predict_training
from trainer.config import TrainConfig
from trainer.options.classifier_options import sgd_batch
from trainer.order import steps_per_epoch

_READ_AHEAD = 1 << 20


def predict_run(config: TrainConfig, *, ranks: int, rates: Sequence[Path]) -> dict[str, Any]:
    """The `seconds` (low, middle, high) that the command takes, and the `source` of that.

    `rates`: folders of runs with the same model and ranks. Raises ExperimentError for others, and DataError for a
    dataset that cannot be used.
    """
    known = read_rates(rates)
    require_model(config, known)
    if len(known.ranks) != ranks:
        raise ExperimentError(
            f"--rates has runs of {plural(len(known.ranks), 'rank')}, and this training has {ranks}; calibrate with as "
            "many"
        )
    found = Estimate.about(predict_training(work_of(config, str(config.data), ranks), known).all, known.off)
    return {"seconds": found._asdict(), "source": known.source}


def require_model(config: TrainConfig, rates: Rates) -> None:
    """Raise ExperimentError for rates of another model than that of `config`."""
    for name, measured in rates.model.items():
        if measured != (asked := getattr(config, name)):
            raise ExperimentError(
                f"--rates has runs with {flag(name)} {measured}, and this training has {asked}; calibrate with the "
                "options of the training"
            )


def work_of(config: TrainConfig, address: str, ranks: int) -> TrainingWork:
    """The training on the dataset at an address. Raises DataError for one that cannot be used."""
    with opened_dataset(address) as dataset:
        every, test = len(dataset.train), len(dataset.test)
        batch = sgd_batch(_mean_words(dataset)) if config.batch_follows_texts else config.batch_for(ranks)
    validation = max(1, int(every * VALIDATION_SHARE))
    rows = max(1, round(config.train_share * (every - validation)))
    return TrainingWork(
        rows=rows,
        validation=validation,
        test=test,
        epochs=config.epochs_for(steps_per_epoch(rows, batch)),
        global_batch=batch,
        balance=config.balance,
        checkpoint_minutes=config.checkpoint_minutes,
    )


@contextmanager
def opened_dataset(address: str) -> Iterator[Dataset]:
    """A dataset, closed at the end; of one on S3 only what is used is fetched. Raises DataError as `open_dataset`."""
    if is_s3(address):
        with closing(open_range(address, ahead=_READ_AHEAD)) as file, open_dataset(address, file) as dataset:
            yield dataset
    else:
        with open_dataset(address) as dataset:
            yield dataset


def _mean_words(dataset: Dataset) -> float:
    """Words of a row to learn from, on average."""
    arrays = dataset.train.arrays
    if dataset.settings.ragged:
        return len(arrays["tokens"]) / max(1, len(dataset.train))
    return float(arrays["lengths"][:].mean()) if len(dataset.train) else 0.0
