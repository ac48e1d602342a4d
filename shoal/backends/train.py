"""Trains on a source at a place: prepares the run, executes it, and collects its results."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import TrainingError
from common.options import flag
from shoal.backends.execution import execute
from shoal.backends.place import Place, Run
from shoal.config_file import CONFIG, read_config, write_config
from shoal.runs.sources.source import DataSource, Prepared
from trainer.command_line import option_values
from trainer.config import TrainConfig, options_for
from trainer.registry import COMMANDS, MODELS

_OF_ONE_COMMAND = ("resume", "force", "json")
"""Options that are left out of the file that repeats the run."""


def train(
    source: DataSource,
    config: TrainConfig,
    place: Place,
    *,
    given: Mapping[str, Sequence[str]] | None = None,
    predict: Callable[[Place, Run], dict[str, Any] | None] = lambda *_: None,
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
        given: The words of the command's other options. Together with the configuration, they are written to the file
        that repeats the run.
        predict: Function that returns the predicted time and cost of the prepared run, as fields of launch.json.

    Raises:
        DataError: The source is invalid.
        TrainingError: The trainer failed. The message is the trainer's message.
        ShoalError: The place refuses the run, or the run failed without a message.
        KeyboardInterrupt: The run was stopped before its first checkpoint.
    """
    if finished := place.finished_before(config):
        return finished
    run = place.prepare(source, config)
    predicted = predict(place, run)
    _write_options(config, run.prepared, given or place.options)
    return execute(place, run, predicted)


def _write_options(config: TrainConfig, prepared: Prepared, given: Mapping[str, Sequence[str]]) -> None:
    """Write the file with which the user can repeat the run. A resumed run keeps the options of its first start.

    Raises TrainingError if the output folder is not writable.
    """
    if prepared.local_path is not None and not {"input", "data"} & {*given}:
        given = {"data": (str(prepared.local_path),), **given}
    words = repeating_options(config, given)
    try:
        if config.resume:
            words = stored_options(config.output) | words
        config.output.mkdir(parents=True, exist_ok=True)
        write_config(config.output / CONFIG, COMMANDS[MODELS[config.model].learns], words)
    except OSError as error:
        raise TrainingError(f"cannot write to {config.output}: {error.strerror}; choose another --output") from error


def repeating_options(config: TrainConfig, given: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the options with which the user can repeat a run: the words of each option's value, by name."""
    learns = MODELS[config.model].learns
    own = {each.name for each in options_for(learns)} - {"data"}
    words = {flag(name)[2:]: each for name, each in option_values(config).items() if name in own}
    return {name: each for name, each in {**words, **given}.items() if name not in _OF_ONE_COMMAND}


def stored_options(output: Path) -> dict[str, Sequence[str]]:
    """Return the options in the file that repeats the run in a folder. Without the file, return no options."""
    if not (output / CONFIG).exists():
        return {}
    entries = read_config(output / CONFIG)[1].items()
    given = {name: () if each.switch else each.words for name, each in entries if each.switch is not False}
    return {name: words for name, words in given.items() if name not in _OF_ONE_COMMAND}
