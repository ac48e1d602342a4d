"""What a run is expected to take: by runs of such ranks or nodes, or else by the catalogue.

A run on nodes must never fail because nobody can tell what it will take: then a note says why.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.progress import Bars
from bootstrap.training.places.place import Place, Run
from bootstrap.training.sources.source import Prepared
from bootstrap.training.train import Forecast
from common.display import plural
from common.errors import DataError, ExperimentError, ShoalError
from common.options import flag
from experiments.forecast.estimate import Estimate, total
from experiments.forecast.nodes import NODES_START, NodeStage, predict_nodes
from experiments.forecast.rates import Node, Rates
from experiments.forecast.training import predict_training
from infra.topology_error import TopologyError
from trainer.config import TrainConfig
from trainer.registry import AUTO, MODELS

_REQUEST = Estimate(1.0, 3.0, 15.0)
"""Seconds until AWS has taken a request, and nodes without data to copy have heard of it; not measured."""


def forecast_by(rates: Rates | None, bars: Bars) -> Forecast:
    """A forecast by rates; None: of nodes by the catalogue, and none of this machine."""
    return partial(forecast_run, rates=rates, bars=bars)


def forecast_run(place: Place, run: Run, *, rates: Rates | None, bars: Bars) -> dict[str, Any] | None:
    """What a run takes: `seconds`, as launch.json names them, and the `source`; on nodes also `dollars` (None where a
    price is not known), and `stages` with the same of each. It is noted, too. None where nobody can tell.

    Raises ExperimentError for rates of other ranks of this machine, and DataError for a dataset that cannot be used
    there.
    """
    if place.ranks is not None:
        if rates is None:
            return None
        found = forecast_here(run.prepared, run.config, place.ranks, rates)
        seconds = Estimate(**found["seconds"])
        bars.note(f"predicted: {seconds.middle:.1f} s ({seconds.low:.1f} to {seconds.high:.1f})")
        return found
    try:
        nodes = place.nodes(readers=run.prepared.readers > 0)
        if not nodes:
            return None
        found = _on_nodes(place, run, nodes, rates)
    except (BotoCoreError, ClientError, DataError, ExperimentError, ShoalError, TopologyError) as error:
        bars.note(f"not predicted: {error}")
        _warn(place, NODES_START.high, bars)
        return None
    _warn(place, found["seconds"]["middle"], bars)
    minutes = Estimate(**found["seconds"]).times(1 / 60)
    dollars = f", ${found['dollars']['middle']:,.2f}" if found["dollars"] else ""
    bars.note(f"predicted, on AWS: {minutes.middle:.1f} minutes ({minutes.low:.1f} to {minutes.high:.1f}){dollars}")
    return found


def _warn(place: Place, seconds: float, bars: Bars) -> None:
    """Note that the command's credentials end before so many seconds are over, where they do."""
    if sentence := place.credentials_warning(seconds):
        bars.note(f"warning: {sentence}")


def forecast_here(prepared: Prepared, config: TrainConfig, ranks: int, rates: Rates) -> dict[str, Any]:
    """The `seconds` (low, middle, high) that a run takes on this machine, and the `source` of that.

    Raises ExperimentError for rates of another model or of other ranks, and DataError for a dataset that cannot be
    used.
    """
    _require_model(config, rates)
    if len(rates.ranks) != ranks:
        raise ExperimentError(
            f"--rates has runs of {plural(len(rates.ranks), 'rank')}, and this training has {ranks}; calibrate with as "
            "many"
        )
    found = Estimate.about(predict_training(prepared.work(config, ranks), rates).all, rates.off)
    return {"seconds": found._asdict(), "source": rates.source}


def _require_model(config: TrainConfig, rates: Rates) -> None:
    """Raise ExperimentError for rates of another model than that of `config`."""
    for name, measured in rates.model.items():
        if measured != (asked := getattr(config, name)):
            raise ExperimentError(
                f"--rates has runs with {flag(name)} {measured}, and this training has {asked}; calibrate with the "
                "options of the training"
            )


def _on_nodes(place: Place, run: Run, nodes: Sequence[Node], rates: Rates | None) -> dict[str, Any]:
    config, prepared = run.config, run.prepared
    if config.resume:
        raise ShoalError("the training goes on from where it was stopped")
    if told := prepared.lasts(config):
        stages: Sequence[NodeStage] = (
            NodeStage(name="start the nodes", seconds=NODES_START, basis="not measured"),
            NodeStage(name="copy the data", seconds=_REQUEST, basis="not measured"),
            NodeStage(name="train", seconds=told, basis="--minutes, and the first words"),
        )
    else:
        try:
            if config.model == AUTO:
                raise ExperimentError(
                    f"--model {AUTO} searches for {config.search_seconds / 60:g} minutes at most, and then trains the "
                    "model that it finds"
                )
            work = prepared.work(config, sum(node.gpus for node in nodes))
        except ExperimentError as error:
            hourly = place.dollars(Estimate.exact(3600), nodes)
            priced = f"; its nodes cost ${hourly.middle:,.2f} an hour" if hourly else ""
            raise ExperimentError(f"{error}{priced}") from error
        if rates is not None:
            _require_model(config, rates)
        elif not MODELS[config.model].has_known_rates:
            raise ShoalError(
                f"the catalogue has rates of LSTMs alone; for {config.model} give --rates, the output of `shoal "
                f"calibrate --deployment {place.name} --model {config.model}`"
            )
        stages = predict_nodes(nodes, work, shared=place.shares, model=prepared.model_on_gpus(config), rates=rates)
    stages = (*stages, NodeStage(name="end the nodes", seconds=_REQUEST, basis="not measured"))

    def amounts(seconds: Estimate) -> dict[str, Any]:
        dollars = place.dollars(seconds, nodes)
        return {"seconds": seconds._asdict(), "dollars": dollars and dollars._asdict()}

    return {
        **amounts(total([stage.seconds for stage in stages])),
        "stages": [{"name": stage.name, **amounts(stage.seconds)} for stage in stages],
        "source": next(stage.basis for stage in stages if stage.name == "train"),
    }
