"""Predicts the time and cost of an experiment's runs.

Do not count an unknown cost as zero, because then a limit in dollars could not be enforced.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shoal_balance import steps_per_epoch

from common.errors import ExperimentError
from corpus.rules import VALIDATION_SHARE
from experiments import forecast
from experiments.choices import predict, setup_hourly
from experiments.estimate import NOTHING, Estimate, total
from experiments.forecast import Training, Work
from infra import cost
from infra.topology import Topology
from trainer.config import TrainConfig
from trainer.registry import MODELS


class DatasetSize(NamedTuple):
    train: int
    test: int
    words: float = 100.0
    """Mean number of words per row."""

    def training_rows(self, config: TrainConfig) -> int:
        return config.rows_to_learn(self.train - max(1, int(self.train * VALIDATION_SHARE)))

    def training(self, config: TrainConfig, ranks: int, embedding: int) -> Training:
        """Return the training run of an LSTM on this dataset. `embedding` is the dimension of the word vectors."""
        rows, words = self.training_rows(config), min(self.words, config.row_length)
        batch = config.requested_batch(ranks) or forecast.default_batch(rows)
        return Training(
            rows=rows,
            epochs=config.epochs_for(steps_per_epoch(rows, batch)),
            dataset_bytes=forecast.WORD_BYTES * self.words * (self.train + self.test),
            global_batch=batch,
            operations=forecast.lstm_operations(
                embedding=embedding, hidden=config.hidden, layers=config.layers, words=words
            ),
        )


@dataclass(frozen=True, kw_only=True)
class RunPrice:
    """Predicted time and cost of a run. None means unknown."""

    seconds: Estimate | None = None
    dollars: Estimate | None = None
    basis: str
    """Source of the prediction, or the reason why it is unknown."""


def unknown_price(why: str, *, dollars: Estimate | None = None) -> RunPrice:
    """Return the price of a run with unknown time. `why` is the reason."""
    return RunPrice(dollars=dollars, basis=f"cannot tell: {why}")


def training_price(topology: Topology, config: TrainConfig, size: DatasetSize) -> RunPrice:
    """Return the price of a training run on a topology's GPUs, from the start to the termination of the nodes. It
    includes the idle preprocessing cluster."""
    nodes = forecast.nodes_of(topology)
    if not nodes:
        return unknown_price(f"{topology.name} has no GPUs")
    if not MODELS[config.model].has_known_rates:
        return unknown_price(f"how fast GPUs train --model {config.model} is not known")
    if config.embedding is None:
        return unknown_price("the size of the vectors in --embeddings is not known")
    work = size.training(config, sum(node.gpus for node in nodes), config.embedding)
    prediction = predict(topology, Work(rows=work.rows, epochs=work.epochs, known=work))
    if prediction.unknown:
        return RunPrice(seconds=prediction.seconds, basis=_without_price(prediction.unknown))
    return RunPrice(seconds=prediction.seconds, dollars=prediction.dollars, basis=prediction.stages[-1].basis)


def preprocessing_price(topology: Topology, raw_bytes: float) -> RunPrice:
    """Return the price of a preprocessing job on a topology's cluster, which exists already."""
    if (made := topology.preprocessing) is None:
        return unknown_price(f"{topology.name} has no preprocessing cluster")
    seconds = forecast.cluster_seconds(
        made.primary.instance_type, forecast.workers_of(made), raw_bytes, fixed_rows=True
    )
    if unknown := cost.unknown(topology):
        return RunPrice(seconds=seconds, basis=_without_price(unknown))
    return RunPrice(seconds=seconds, dollars=seconds * setup_hourly(topology) / 3600, basis=forecast.PREPROCESSING)


def _without_price(items: Sequence[str]) -> str:
    return f"cannot tell: these have no price in the topology's region: {', '.join(items)}"


def price_of_cores(workers: int, raw_bytes: float) -> RunPrice:
    seconds = forecast.LOCAL_START + forecast.machine_seconds(raw_bytes, workers, 1.0, fixed_rows=True)
    return RunPrice(seconds=seconds, dollars=NOTHING, basis=forecast.PREPROCESSING)


def total_dollars(prices: Sequence[RunPrice]) -> Estimate:
    return total(price.dollars for price in prices if price.dollars is not None)


def require_price(prices: Sequence[RunPrice], most: float | None) -> None:
    """Raise ExperimentError if these runs could cost more than `most` dollars. `most=None` means no limit."""
    if most is None:
        return
    if unknown := next((price for price in prices if price.dollars is None), None):
        raise ExperimentError(
            f"Shoal cannot keep the runs below ${most:,.2f}, because one run has no known price ({unknown.basis}); run "
            "other --arms, or remove --max-price and max_price of the file"
        )
    dollars = total_dollars(prices)
    if dollars.high > most:
        raise ExperimentError(
            f"the runs would cost ${dollars.middle:,.2f}, and up to ${dollars.high:,.2f}, which is more than "
            f"${most:,.2f}; raise --max-price, or run fewer --arms"
        )
