"""What one machine takes and costs for all of the work: this one, and each sensible kind of EC2's.

It downloads the reviews, preprocesses them on its own cores (`shoal preprocess --local`), and trains: fastText's model
on a core, or an LSTM on its GPUs. What a core does was measured here (`preprocessing.py`; benchmarks/results/
fasttext.md), and what one of EC2's does is assumed, as for clusters.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from common.cores import cores
from experiments.forecast.cluster import ClusterWork, Prediction, predict_cluster
from experiments.forecast.estimate import Estimate, total
from experiments.forecast.preprocessing import ALONE, WORD_BYTES, download_seconds, machine_seconds, speed
from experiments.forecast.rates import Rates
from experiments.forecast.training import predict_training
from infra import catalog
from infra.catalog import InstanceType
from infra.cost import known
from infra.topology import Topology

FASTTEXT, LSTM = "fasttext", "lstm"
HERE = "this machine"
_ONE_START = Estimate(60, 180, 600)
"""Seconds from the request for a machine to the first command on it, with Shoal installed; not measured."""
_WORDS_A_SECOND = 4.5e6
"""That one core learns by fastText's model: 6.4 million with a table that fits its caches, .7 of it with one that does
not (benchmarks/results/fasttext.md). More threads of one machine are hardly faster."""
_OFF = 0.6
"""By what share all of it is expected to be off, as preprocessing on a cluster."""
_KEPT = 2.0
"""GB of volume for each GB of raw input, beside the system's."""
_SYSTEM_GIB = 100
_FASTER = 0.75


@dataclass(frozen=True, kw_only=True)
class MachinePlan:
    """One machine for all of the work."""

    name: str
    model: str
    seconds: Estimate
    dollars: Estimate
    stages: dict[str, float]
    """The middle of each, in seconds."""

    def content(self) -> dict[str, Any]:
        """It, for a program."""
        return {
            "machine": self.name,
            "model": self.model,
            "seconds": self.seconds._asdict(),
            "dollars": self.dollars._asdict(),
            "stages": self.stages,
        }


@dataclass(frozen=True, kw_only=True)
class MachineSpeed:
    """How fast a machine is: all of its cores together when they are busy, and one that works `alone`, in cores of the
    machine that was measured."""

    together: float
    alone: float


def plans(
    work: ClusterWork, region: str, *, here: MachineSpeed | None = None, rates: Rates | None = None
) -> list[MachinePlan]:
    """This machine, and each kind of the region that has a price, with each model that it can train.

    `here` is how fast this machine is (default: each core as the one that was measured), and `rates` are those of a
    model that its ranks train.
    """
    prices = catalog.prices(region)
    here = here or MachineSpeed(together=cores(), alone=1.0)
    found = [_by_fasttext(HERE, work, here.together, here.alone, 1.0, None)]
    if rates is not None:
        before = {"preprocess": _preprocess(work, here.together, here.alone)}
        trained = Estimate.about(predict_training(work.training, rates).all, rates.off)
        found.append(_before_training(HERE, str(rates.model["model"]), before, trained, None))
    for kind in catalog.catalog().types.values():
        hourly = known(prices.hourly, kind.name) if not kind.retired else None
        if hourly is None:
            continue
        volume = known(prices.volume_hourly, _SYSTEM_GIB + round(_KEPT * (work.raw_bytes or 0.0) / 1e9)) or 0.0
        if kind.gpu and kind.image:
            found += _by_gpu(kind, work, region, hourly + volume)
        elif not kind.gpu:
            alone = speed(kind.name) * (1.0 if kind.architecture == "arm64" else ALONE)
            found.append(
                _by_fasttext(kind.name, work, kind.vcpu * speed(kind.name), alone, kind.network, hourly + volume)
            )
    return found


def best(found: list[MachinePlan]) -> list[MachinePlan]:
    """This machine, and of each model the cheapest of EC2's, and each that is dearer and faster by a quarter."""
    front = [each for each in found if each.name == HERE]
    for model in (FASTTEXT, LSTM):
        rented = [each for each in found if each.name != HERE and each.model == model]
        quickest = float("inf")
        for each in sorted(rented, key=lambda one: (one.dollars.middle, one.seconds.middle)):
            if each.seconds.middle < _FASTER * quickest:
                quickest = each.seconds.middle
                front.append(each)
    return front


def beats(cluster: Prediction, machine: MachinePlan) -> bool:
    """Whether a cluster is faster or cheaper than a machine beyond the error of the prediction."""
    return cluster.seconds.high < machine.seconds.low or cluster.dollars.high < machine.dollars.low


def _by_fasttext(
    name: str, work: ClusterWork, equal_cores: float, alone: float, gbits: float, hourly: float | None
) -> MachinePlan:
    """`equal_cores`, `alone`: all cores together, and one that works alone, as cores of the machine measured; `hourly`:
    dollars, None for this machine, which has its input and costs nothing."""
    trained = work.training
    words = work.epochs * trained.rows * trained.row_bytes / WORD_BYTES
    stages = {
        **({} if hourly is None else {"download": _download(work, gbits)}),
        "preprocess": _preprocess(work, equal_cores, alone),
        "train": words / _WORDS_A_SECOND / alone,
    }
    return _plan(name, FASTTEXT, stages, hourly)


def _by_gpu(kind: InstanceType, work: ClusterWork, region: str, hourly: float) -> Iterator[MachinePlan]:
    node = {"instance_type": kind.name, "count": 1}
    topology = Topology.model_validate(
        {"name": kind.name, "description": "one node", "region": region, "training": [node]}
    )
    found = predict_cluster(topology, replace(work, raw_bytes=None))
    if found.unknown:
        return
    trained = next(stage.seconds for stage in found.stages if stage.name == "train")
    equal = speed(kind.name)
    stages = {
        "download": _download(work, kind.network),
        "preprocess": _preprocess(work, kind.vcpu * equal, equal * ALONE),
    }
    yield _before_training(kind.name, LSTM, stages, trained, hourly)


def _before_training(
    name: str, model: str, stages: dict[str, float], trained: Estimate, hourly: float | None
) -> MachinePlan:
    """A machine with a training whose own error is known."""
    before = _plan(name, model, stages, hourly)
    seconds = before.seconds.plus(trained)
    return replace(
        before,
        seconds=seconds,
        dollars=seconds.times((hourly or 0.0) / 3600),
        stages={**before.stages, "train": trained.middle},
    )


def _plan(name: str, model: str, stages: dict[str, float], hourly: float | None) -> MachinePlan:
    seconds = Estimate.about(sum(stages.values()), _OFF)
    if hourly is not None:
        stages, seconds = {"start": _ONE_START.middle, **stages}, total([_ONE_START, seconds])
    return MachinePlan(
        name=name, model=model, seconds=seconds, dollars=seconds.times((hourly or 0.0) / 3600), stages=stages
    )


def _download(work: ClusterWork, gbits: float) -> float:
    """Seconds; of reviews that are there already none, nor of a dataset."""
    return download_seconds(work.raw_bytes or 0.0, gbits)


def _preprocess(work: ClusterWork, equal_cores: float, alone: float) -> float:
    return machine_seconds(work.raw_bytes or 0.0, work.costs, equal_cores, alone)
