"""Trains on a source at a place: prepares and predicts the run, executes it, and collects its results."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.config_file import CONFIG, read_config, write_config
from bootstrap.progress import Bars
from bootstrap.training.places.execution import execute
from bootstrap.training.places.place import Place, Run
from bootstrap.training.sources.source import Prepared, Source
from common.errors import DataError, ExperimentError, ShoalError, TrainingError
from common.options import flag
from experiments.estimate import total
from experiments.forecast import node_stages
from infra.topology_error import TopologyError
from trainer.command_line import option_values
from trainer.config import TrainConfig, options_for
from trainer.registry import COMMANDS, MODELS

_OF_ONE_COMMAND = ("resume", "force", "json")
"""Options that are left out of the file that repeats the run."""


def train(
    source: Source,
    config: TrainConfig,
    place: Place,
    bars: Bars,
    *,
    given: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Train at a place, and write the results to `config.output`. Return the content of summary.json with added fields.

    A run on nodes adds these fields:

    - `nodes` and `readers`: the instances that trained, and the instances that read text.
    - `run`: the address of the run's folder.
    - `cost`: the cost of the run in dollars, or None if a price is unknown.
    - `refused`: one message for each object that was not fetched.
    - `inputs` and `read`: the addresses from which the nodes read text, and the readers' counts of lines.
    - `launch`: the actual durations, and the prediction as `predicted`.

    Ctrl-C and SIGTERM stop the run with a checkpoint. This is not an error: `stopped` is then true, and `stopped_by` is
    the name of the signal. If `config.resume` is true, a stopped run continues. A finished run is not changed, and
    `finished_before` is then true.

    Args:
        source: The training data.
        config: The configuration of the run.
        place: The place of the run.
        bars: Progress bars.
        given: The words of the command's other options. Together with the configuration, they are written to the file
        that repeats the run.

    Raises:
        DataError: The source is invalid.
        TrainingError: The trainer failed. The message is the trainer's message.
        ShoalError: The place refuses the run, or the run failed without a message.
        KeyboardInterrupt: The run was stopped before its first checkpoint.
    """
    if finished := place.finished_before(config):
        return finished
    run = place.prepare(source, config, bars)
    predicted = predict_run(place, run, bars)
    _write_options(config, run.prepared, given or place.options)
    return execute(place, run, bars, predicted)


def _write_options(config: TrainConfig, prepared: Prepared, given: Mapping[str, Sequence[str]]) -> None:
    """Write the file with which the user can repeat the run. A resumed run keeps the options of its first start.

    Raises TrainingError if the output folder is not writable.
    """
    path = config.output / CONFIG
    learns = MODELS[config.model].learns
    own = {each.name for each in options_for(learns)} - {"data"}
    words: dict[str, Sequence[str]] = {
        flag(name)[2:]: each for name, each in option_values(config).items() if name in own
    }
    if prepared.local_path is not None and not {"input", "data"} & {*given}:
        words["data"] = (str(prepared.local_path),)
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
    """Predict the duration and cost of a run, print them as a note, and return them as fields of launch.json.

    The fields are `seconds`, `dollars` (None if a price is unknown), `stages` (seconds by name) and `source`. Returns
    None if the place has no nodes, or if a prediction is impossible. In the latter case a note gives the reason.
    """
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
                f"{error}" + (f"; its nodes cost ${hourly:,.2f} per hour" if hourly else "")
            ) from error
    except (BotoCoreError, ClientError, DataError, ExperimentError, ShoalError, TopologyError) as error:
        bars.note(f"not predicted: {error}")
        return None
    seconds = total(stage.seconds for stage in stages)
    dollars = None if hourly is None else seconds * hourly / 3600
    bars.note(f"predicted, on AWS: {seconds.time()}" + (f", {dollars.dollars()}" if dollars else ""))
    return {
        "seconds": asdict(seconds),
        "dollars": dollars and asdict(dollars),
        "stages": {stage.name: stage.seconds.middle for stage in stages},
        "source": stages[-1].basis,
    }


def _require_known(run: Run) -> None:
    """Raise ExperimentError if Shoal cannot predict the duration of the run."""
    if run.config.resume:
        raise ExperimentError("Shoal does not predict the remaining time of a resumed run")
    if not MODELS[run.config.model].has_known_rates:
        raise ExperimentError(f"the speed of GPUs with --model {run.config.model} is unknown")
