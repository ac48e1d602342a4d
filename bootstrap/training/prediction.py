"""What a training on this machine is predicted to take, by runs that were made before (experiments/prediction)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.dataset import open_dataset
from corpus.display import plural
from corpus.rules import VALIDATION_SHARE
from experiments.errors import ExperimentError
from experiments.prediction.estimate import Estimate
from experiments.prediction.rates import rates_of
from experiments.prediction.training import TrainingWork, predict_training
from experiments.runs import find_runs, read_run
from trainer.config import TrainConfig
from trainer.order import steps_per_epoch


def predict_run(config: TrainConfig, *, ranks: int, rates: Sequence[Path]) -> dict[str, Any]:
    """The `seconds` (low, middle, high) that the command takes, and the `source` of that.

    `rates`: folders of runs with the same model and ranks. Raises ExperimentError for others, and DataError for a
    dataset that cannot be used.
    """
    known = rates_of([read_run(folder) for folder in find_runs(rates)])
    if len(known.ranks) != ranks:
        raise ExperimentError(
            f"--rates has runs of {plural(len(known.ranks), 'rank')}, and this training has {ranks}; calibrate with as "
            "many"
        )
    with open_dataset(config.data) as dataset:
        every, test = len(dataset.train), len(dataset.test)
    validation = max(1, int(every * VALIDATION_SHARE))
    rows = max(1, round(config.train_share * (every - validation)))
    batch = config.batch_for(ranks)
    work = TrainingWork(
        rows=rows,
        validation=validation,
        test=test,
        epochs=config.epochs_for(steps_per_epoch(rows, batch)),
        global_batch=batch,
        balanced=config.balance != "off",
        checkpoint_minutes=config.checkpoint_minutes,
    )
    found = Estimate.about(predict_training(work, known).all, known.off)
    return {"seconds": found._asdict(), "source": known.source}
