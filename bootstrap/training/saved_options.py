"""The file in a run's folder that repeats the run."""

from collections.abc import Mapping, Sequence

from bootstrap.config_file import CONFIG as OPTIONS
from bootstrap.config_file import read_config, write_config
from bootstrap.training.sources.source import Prepared
from common.errors import TrainingError
from common.options import flag
from trainer.command_line import as_words
from trainer.config import TrainConfig, options_for
from trainer.registry import COMMANDS, MODELS

_OF_ONE_COMMAND = ("resume", "force", "json")
"""Options that a command which repeats the run does not have."""


def write_options(config: TrainConfig, prepared: Prepared, given: Mapping[str, Sequence[str]]) -> None:
    """Write the file that repeats the run, of the words that its options were given. A run that goes on keeps options
    that were given when it began. Raises TrainingError where the output cannot be written to."""
    path = config.output / OPTIONS
    learns = MODELS[config.model].learns
    own = {each.name for each in options_for(learns, auto=learns == "classes")} - {"data"}
    words: dict[str, Sequence[str]] = {flag(name)[2:]: each for name, each in as_words(config).items() if name in own}
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
