"""A training, from a source to its results, wherever it happens."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.config_file import CONFIG, read_config, write_config
from bootstrap.progress import Bars
from bootstrap.training.places.carrying_out import carry_out
from bootstrap.training.places.place import Place, Run
from bootstrap.training.sources.source import Prepared, Source
from common.errors import DataError, ExperimentError, ShoalError, TrainingError
from common.options import flag
from experiments.estimate import total
from experiments.forecast import NODES_START, node_stages
from infra.topology_error import TopologyError
from trainer.command_line import option_values
from trainer.config import TrainConfig, options_for
from trainer.registry import AUTO, COMMANDS, MODELS

_OF_ONE_COMMAND = ("resume", "force", "json")
"""Options that a command which repeats the run does not have."""


def train(
    source: Source,
    config: TrainConfig,
    place: Place,
    bars: Bars,
    *,
    given: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Train at a place, with the results in `config.output`; returns the content of summary.json.

    Where nodes were paid for, it has besides the `nodes`, the `readers`, the folder of the `run`, its `cost` in dollars
    (None where a price is not known), in `refused` a sentence for each object of that folder that is not fetched, the
    `inputs` that the nodes read, and what was `read` of them. Where that was known, `launch` says what was `predicted`,
    and what it took.

    `given` are the words of the options of the command, where there is one; with the configuration they make the file
    in the output that repeats the run.

    Ctrl-C and SIGTERM stop the run with a checkpoint, which is no error: then `stopped` is true, and `stopped_by` is
    the signal's name. With `config.resume` a stopped run continues; a finished one is left as it is, and
    `finished_before` is true. Raises DataError for a source that cannot be used, TrainingError with the trainer's own
    sentence, ShoalError where the place cannot do it or the run ends without one, and KeyboardInterrupt where it was
    stopped before its first checkpoint.
    """
    if finished := place.finished_before(config):
        return finished
    run = place.prepare(source, config, bars)
    predicted = predict_run(place, run, bars)
    _write_options(config, run.prepared, given or place.options)
    return carry_out(place, run, bars, predicted)


def _write_options(config: TrainConfig, prepared: Prepared, given: Mapping[str, Sequence[str]]) -> None:
    """Write the file that repeats the run, of the words that its options were given. A run that goes on keeps options
    that were given when it began. Raises TrainingError where the output cannot be written to."""
    path = config.output / CONFIG
    learns = MODELS[config.model].learns
    own = {each.name for each in options_for(learns, auto=learns == "classes")} - {"data"}
    words: dict[str, Sequence[str]] = {
        flag(name)[2:]: each for name, each in option_values(config).items() if name in own
    }
    if prepared.here is not None and not {"input", "data"} & {*given}:
        words["data"] = (str(prepared.here),)
    words |= given
    try:
        if config.resume and path.exists():
            before = read_config(path)[1].items()
            kept = {name: () if each.switch else each.words for name, each in before if each.switch is not False}
            words = kept | words
        config.output.mkdir(parents=True, exist_ok=True)
        write_config(
            path,
            COMMANDS[learns],
            {name: each for name, each in words.items() if name not in _OF_ONE_COMMAND},
        )
    except OSError as error:
        raise TrainingError(f"cannot write to {config.output}: {error.strerror}; choose another --output") from error


def predict_run(place: Place, run: Run, bars: Bars) -> dict[str, Any] | None:
    """The `seconds`, the `dollars` (None where a price is not known), the seconds of the `stages` by name, and the
    `source`, as launch.json has them. It is noted, too. None of a run without nodes, and where it is not known: a run
    never fails because of that, and a note says why."""
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
