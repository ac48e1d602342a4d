"""What the runs of an experiment would take and cost, before they are made.

Do not take what cannot be told for nothing: a limit of dollars cannot be kept with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from common.errors import ExperimentError
from corpus.rules import VALIDATION_SHARE
from experiments.forecast.cluster import ClusterWork, predict_cluster
from experiments.forecast.estimate import Estimate, total
from experiments.forecast.gpu_rates import LstmClassifier, lstm_operations
from experiments.forecast.nodes import nodes_of
from experiments.forecast.preprocessing import REFERENCE
from experiments.plans.parts import Local
from infra import catalog
from infra.topology import Topology, instance_types
from infra.topology_error import TopologyError
from trainer.config import TrainConfig
from trainer.order import steps_per_epoch
from trainer.registry import MODELS

_AROUND = 10.0
"""Seconds of a run on this machine in which no rank sleeps: starting processes, measuring rates."""
_OFF_ASLEEP, _OFF_PREPROCESSING = 0.25, 1.0


class DatasetSize(NamedTuple):
    """The rows of a dataset."""

    train: int
    test: int
    words: float = 100.0
    """Of a row, on average."""

    def trained(self, config: TrainConfig) -> int:
        """The rows that a training learns from."""
        return config.rows_to_learn(self.train - max(1, int(self.train * VALIDATION_SHARE)))


@dataclass(frozen=True, kw_only=True)
class RunPrice:
    """What a run would take and cost; None where that cannot be told."""

    seconds: Estimate | None = None
    dollars: Estimate | None = None
    basis: str
    """What it follows from, or why it cannot be told."""
    retired: tuple[str, ...] = ()
    """Types that its topology names and AWS does not start any more."""


def cannot_tell(why: str, *, dollars: Estimate | None = None) -> RunPrice:
    """The price of a run of which no time is known."""
    return RunPrice(dollars=dollars, basis=f"cannot tell: {why}")


def training_price(topology: Topology, config: TrainConfig, size: DatasetSize) -> RunPrice:
    """A training on a topology's GPUs, from the start of its nodes to their end."""
    return replace(_training_price(topology, config, size), retired=_retired(topology))


def _retired(topology: Topology) -> tuple[str, ...]:
    return tuple(name for name in instance_types(topology) if catalog.find(name).retired)


def _training_price(topology: Topology, config: TrainConfig, size: DatasetSize) -> RunPrice:
    if not nodes_of(topology):
        return cannot_tell(f"{topology.name} has no GPUs")
    if not MODELS[config.model].has_known_rates:
        return cannot_tell(f"how fast GPUs train --model {config.model} is not known")
    if config.embedding is None:
        return cannot_tell("the size of the vectors in --embeddings is not known")
    ranks = sum(node.gpus for node in nodes_of(topology))
    batch = config.batch_for(ranks)
    work = ClusterWork(
        rows=config.rows_to_learn(size.train) + size.test,
        raw_bytes=None,
        epochs=config.epochs_for(steps_per_epoch(size.trained(config), batch)),
        global_batch=batch,
        costs=REFERENCE,
        model=LstmClassifier(
            lstm_operations(
                embedding=config.embedding,
                hidden=config.hidden,
                layers=config.layers,
                words=min(size.words, config.row_length),
            )
        ),
    )
    return _on_topology(topology, work)


def preprocessing_price(topology: Topology, raw_bytes: float) -> RunPrice:
    """A preprocessing on a topology's cluster, which is there already."""
    if topology.preprocessing is None:
        return cannot_tell(f"{topology.name} has no cluster to preprocess with")
    return _on_topology(
        topology, ClusterWork(rows=1, raw_bytes=raw_bytes, epochs=1, costs=REFERENCE), only="preprocess"
    )


def price_asleep(local: Local, config: TrainConfig, size: DatasetSize) -> RunPrice:
    """A training on this machine whose ranks sleep."""
    rows = size.trained(config)
    batch = config.batch_for(local.world_size)
    epochs = config.epochs_for(steps_per_epoch(rows, batch))
    rate = len(local.sleep) * min(local.sleep) if config.balance == "off" else sum(local.sleep)
    return RunPrice(
        seconds=Estimate.about(_AROUND + epochs * rows / rate, _OFF_ASLEEP),
        dollars=Estimate.exact(0.0),
        basis="the rates at which its ranks sleep",
    )


def price_of_cores(workers: int, raw_bytes: float) -> RunPrice:
    """A preprocessing on so many cores of this machine."""
    seconds = raw_bytes / 1e9 * sum(REFERENCE.cpu.values()) / workers
    return RunPrice(
        seconds=Estimate.about(_AROUND + seconds, _OFF_PREPROCESSING),
        dollars=Estimate.exact(0.0),
        basis="CPU-seconds measured on another machine",
    )


def total_dollars(prices: Sequence[RunPrice]) -> Estimate:
    """The dollars of all runs whose price can be told."""
    return total([price.dollars for price in prices if price.dollars is not None])


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


def _on_topology(topology: Topology, work: ClusterWork, only: str | None = None) -> RunPrice:
    try:
        found = predict_cluster(topology, work)
    except (ExperimentError, TopologyError) as error:
        return cannot_tell(str(error))
    stages = [stage for stage in found.stages if only in (None, stage.name)]
    by_use = Estimate.exact(found.by_use if only is None else 0.0)
    return RunPrice(
        seconds=total([stage.seconds for stage in stages]),
        dollars=total([*(stage.dollars for stage in stages), by_use]),
        basis=next((stage.basis for stage in stages if stage.name == (only or "train")), ""),
        retired=_retired(topology),
    )
