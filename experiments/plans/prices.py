"""What the runs of an experiment would take and cost, before they are made.

Do not take what is not known for nothing: a limit of dollars cannot be kept with it.
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
    """Of a row, on average."""

    def learnt(self, config: TrainConfig) -> int:
        return config.rows_to_learn(self.train - max(1, int(self.train * VALIDATION_SHARE)))

    def training(self, config: TrainConfig, ranks: int, embedding: int) -> Training:
        """An LSTM's training on it, with vectors of so many numbers."""
        rows, words = self.learnt(config), min(self.words, config.row_length)
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
    """What a run would take and cost; None where that is not known."""

    seconds: Estimate | None = None
    dollars: Estimate | None = None
    basis: str
    """What it follows from, or why it is not known."""


def cannot_tell(why: str, *, dollars: Estimate | None = None) -> RunPrice:
    """The price of a run of which no time is known."""
    return RunPrice(dollars=dollars, basis=f"cannot tell: {why}")


def training_price(topology: Topology, config: TrainConfig, size: DatasetSize) -> RunPrice:
    """A training on a topology's GPUs, from the start of its nodes to their end, with the cluster that idles beside
    it."""
    nodes = forecast.nodes_of(topology)
    if not nodes:
        return cannot_tell(f"{topology.name} has no GPUs")
    if not MODELS[config.model].has_known_rates:
        return cannot_tell(f"how fast GPUs train --model {config.model} is not known")
    if config.embedding is None:
        return cannot_tell("the size of the vectors in --embeddings is not known")
    work = size.training(config, sum(node.gpus for node in nodes), config.embedding)
    found = predict(topology, Work(rows=work.rows, epochs=work.epochs, known=work))
    if found.unknown:
        return RunPrice(seconds=found.seconds, basis=_without_price(found.unknown))
    return RunPrice(seconds=found.seconds, dollars=found.dollars, basis=found.stages[-1].basis)


def preprocessing_price(topology: Topology, raw_bytes: float) -> RunPrice:
    """A preprocessing on a topology's cluster, which is there already."""
    if (made := topology.preprocessing) is None:
        return cannot_tell(f"{topology.name} has no cluster to preprocess with")
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
    """Raise ExperimentError where these runs may cost more than `most` dollars; None: they may cost any number."""
    if most is None:
        return
    if unknown := next((price for price in prices if price.dollars is None), None):
        raise ExperimentError(
            f"what the runs cost cannot be held below ${most:,.2f}, because one has no price ({unknown.basis}); run "
            "the other --arms, or leave out --max-price, and max_price in the file"
        )
    dollars = total_dollars(prices)
    if dollars.high > most:
        raise ExperimentError(
            f"the runs would cost ${dollars.middle:,.2f}, and up to ${dollars.high:,.2f}, which is more than "
            f"${most:,.2f}; raise --max-price, or run fewer --arms"
        )
