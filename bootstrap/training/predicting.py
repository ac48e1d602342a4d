"""What a run on GPU nodes is expected to take and cost, by the catalogue (experiments/forecast.py).

A run must never fail because that is not known: then a note says why.
"""

from dataclasses import asdict
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.progress import Bars
from bootstrap.training.places.place import Place, Run
from common.errors import DataError, ExperimentError, ShoalError
from experiments.estimate import total
from experiments.forecast import NODES_START, node_stages
from infra.topology_error import TopologyError
from trainer.registry import AUTO, MODELS


def predict_run(place: Place, run: Run, bars: Bars) -> dict[str, Any] | None:
    """The `seconds`, the `dollars` (None where a price is not known), the seconds of the `stages` by name, and the
    `source`, as launch.json has them. It is noted, too. None of a run without nodes, and where it is not known."""
    try:
        if not (nodes := place.nodes(readers=run.prepared.readers > 0)):
            return None
        hourly = place.hourly(nodes)
        try:
            _require_known(run)
            work = run.prepared.work(run.config, sum(node.gpus for node in nodes))
            stages = node_stages(nodes, work, shared=place.shares)
        except ExperimentError as error:
            raise ExperimentError(
                f"{error}" + (f"; its nodes cost ${hourly:,.2f} an hour" if hourly else "")
            ) from error
    except (BotoCoreError, ClientError, DataError, ExperimentError, ShoalError, TopologyError) as error:
        bars.note(f"not predicted: {error}")
        _warn(place, NODES_START.high + 60 * (run.config.minutes or 0), bars)
        return None
    seconds = total(stage.seconds for stage in stages)
    dollars = None if hourly is None else seconds * hourly / 3600
    _warn(place, seconds.middle, bars)
    bars.note(f"predicted, on AWS: {seconds.time()}" + (f", {dollars.dollars()}" if dollars else ""))
    return {
        "seconds": asdict(seconds),
        "dollars": dollars and asdict(dollars),
        "stages": {stage.name: stage.seconds.middle for stage in stages},
        "source": stages[-1].basis,
    }


def _require_known(run: Run) -> None:
    """Raise ExperimentError for a run of which the catalogue does not tell how long it takes."""
    if run.config.resume:
        raise ExperimentError("the training continues from where it was stopped")
    if run.config.model == AUTO:
        minutes = run.config.search_seconds / 60
        raise ExperimentError(f"--model {AUTO} searches for {minutes:g} minutes at most, and then trains what it finds")
    if not MODELS[run.config.model].has_known_rates:
        raise ExperimentError(f"how fast GPUs train --model {run.config.model} is not known")


def _warn(place: Place, seconds: float, bars: Bars) -> None:
    """Note that the command's credentials end before so many seconds are over, where they do."""
    if sentence := place.credentials_warning(seconds):
        bars.note(f"warning: {sentence}")
