"""Whether one machine is enough for a training: the user's own, or the cheapest single node, beside a cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from experiments.forecast.cluster import ClusterWork, Prediction, predict_cluster
from experiments.forecast.estimate import Estimate
from experiments.forecast.rates import Rates
from experiments.forecast.training import predict_training
from infra import catalog
from infra.topology import Topology

_LITTLE_SECONDS = 600.0
"""A cluster that saves no more than this, and not a dollar, is not worth its start."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A training on one machine, and on a cluster."""

    machine: str
    seconds: Estimate
    dollars: Estimate
    cluster_seconds: float
    cluster_dollars: float

    @property
    def saved_seconds(self) -> float:
        """By the cluster."""
        return self.seconds.middle - self.cluster_seconds

    @property
    def enough(self) -> bool:
        """Whether one machine is: the cluster costs as much or more, and saves minutes at most."""
        return self.cluster_dollars >= self.dollars.middle and self.saved_seconds <= _LITTLE_SECONDS

    def sentence(self) -> str:
        """It, for a person."""
        one = f"{self.machine} takes {_time(self.seconds.middle)} for ${self.dollars.middle:,.2f}"
        all_of_them = f"this cluster {_time(self.cluster_seconds)} for ${self.cluster_dollars:,.2f}"
        if self.enough:
            return f"One machine is enough: {one}, {all_of_them}."
        more = self.cluster_dollars - self.dollars.middle
        time = f"{_time(abs(self.saved_seconds))} {'less' if self.saved_seconds > 0 else 'more'}"
        return f"The cluster takes {time} and ${abs(more):,.2f} {'more' if more > 0 else 'less'}: {one}, {all_of_them}."

    def content(self) -> dict[str, Any]:
        """It, for a program."""
        return {
            "machine": self.machine,
            "seconds": self.seconds._asdict(),
            "dollars": self.dollars._asdict(),
            "enough": self.enough,
        }


def compare(topology: Topology, work: ClusterWork, rates: Rates | None, own: Rates | None) -> Comparison | None:
    """The training on the topology, and on one machine: the one that has the rates `own`, or the cheapest single node;
    without the preprocessing. None for a topology of one node, or none, and where no node has a price."""
    training = replace(work, raw_bytes=None)
    if not topology.training or (topology.gpu_nodes == 1 and own is None):
        return None
    cluster = predict_cluster(topology.model_copy(update={"preprocessing": None}), training, rates)
    if own is not None:
        seconds = Estimate.about(predict_training(training.training, own).all, own.off)
        name, dollars = "this machine, by its rates,", Estimate.exact(0.0)
    else:
        alone = min(_on_single_nodes(topology, training), key=lambda each: each.dollars.middle, default=None)
        if alone is None:
            return None
        name, seconds, dollars = f"one {alone.topology.name}, the cheapest node,", alone.seconds, alone.dollars
    return Comparison(
        machine=name,
        seconds=seconds,
        dollars=dollars,
        cluster_seconds=cluster.seconds.middle,
        cluster_dollars=cluster.dollars.middle,
    )


def _on_single_nodes(topology: Topology, work: ClusterWork) -> Iterator[Prediction]:
    """On each type with GPUs that can be started and has a price, a node of it, in the topology's region and market."""
    spot = work.spot or all(group.market == "spot" for group in topology.trainers)
    for kind in catalog.catalog().types.values():
        if kind.gpu and kind.image and not kind.retired:
            node = {"instance_type": kind.name, "count": 1, "market": "spot" if spot else "on-demand"}
            alone = Topology.model_validate(
                {"name": kind.name, "description": "one node", "region": topology.region, "training": [node]}
            )
            found = predict_cluster(alone, work)
            if not found.unknown:
                yield found


def _time(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours" if seconds >= 3600 else f"{seconds / 60:,.0f} minutes"
