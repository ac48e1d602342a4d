"""Reads the summary of a training run and checks it, because others may write where a deployment's nodes write."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bootstrap.config_file import CONFIG as OPTIONS
from bootstrap.config_file import read_config, write_config
from bootstrap.errors import ShoalError
from bootstrap.training.sources.source import Prepared
from corpus.files import indented_json, write_whole
from corpus.options import flag
from trainer.classification.metrics import CALIBRATION, MEASURES, MEASURES_OF_TWO
from trainer.command_line import as_words
from trainer.config import TrainConfig, options_for
from trainer.errors import TrainingError
from trainer.output.files import LAUNCH, SUMMARY, read_json
from trainer.registry import MODELS

_OF_ONE_COMMAND = ("resume", "force", "json")
"""Options that a command which repeats the run does not have."""


def read_summary(folder: Path) -> dict[str, Any] | None:
    """The content of a run's summary.json, or None when the run has not written one.

    Raises ShoalError where a field that Shoal reads is missing or has a wrong type.
    """
    path = folder / SUMMARY
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ShoalError(f"{path} is not the summary of a training: it is no JSON object; {_ADVICE}")
    for name, is_valid in _required_fields(content).items():
        if name not in content or not is_valid(content[name]):
            raise ShoalError(
                f"{path} is not the summary of a training: '{name}' is missing or of a wrong type; {_ADVICE}"
            )
    return content


def write_launch(folder: Path, *, goes_on: bool, **content: Any) -> None:
    """Write beside a run's record what only the command that launched it knows: when it `began` (seconds since 1970),
    `seconds` of the whole launch, what was `predicted` of it, and of a deployment the nodes, the `stages` (name,
    seconds, dollars) and the cost; of a run that `goes_on`, also that of its `earlier` launches. Reports read it
    (experiments/runs.py)."""
    if goes_on and (before := read_json(folder / LAUNCH)):
        earlier = before.pop("earlier", [])
        content["earlier"] = [*(earlier if isinstance(earlier, list) else ()), before]
    with suppress(OSError):  # a report says of what is missing that it is not known
        write_whole(folder / LAUNCH, indented_json(content))


def write_options(config: TrainConfig, prepared: Prepared, given: Mapping[str, Sequence[str]]) -> None:
    """Write the file that repeats the run, of the words that its options were given. A run that goes on keeps options
    that were given when it began. Raises TrainingError where the output cannot be written to."""
    path = config.output / OPTIONS
    learns_words = MODELS[config.model].learns_words
    own = {each.name for each in options_for(words=learns_words)} - {"data"}
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
            "embed" if learns_words else "train",
            {name: each for name, each in words.items() if name not in _OF_ONE_COMMAND},
        )
    except OSError as error:
        raise TrainingError(f"cannot write to {config.output}: {error.strerror}; choose another --output") from error


def _required_fields(content: Mapping[str, Any]) -> Mapping[str, Callable[[Any], bool]]:
    """The fields that a summary must have, each with its check."""
    if content.get("stopped") is True:
        return _FIELDS
    if "vocabulary" in content:
        return {**_FIELDS, **_OF_WORDS}
    confusion: Any = content.get("confusion")
    more_than_two = _is_confusion(confusion) and len(confusion["classes"]) > 2
    return {**_FIELDS, **_MEASURES} if more_than_two else {**_FIELDS, **_MEASURES, **_MEASURES_OF_TWO}


def _is_count(value: Any) -> bool:
    return type(value) is int


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_confusion(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    classes, counts = value.get("classes"), value.get("counts")
    return (
        isinstance(classes, list)
        and isinstance(counts, list)
        and len(classes) == len(counts) >= 2
        and all(isinstance(name, str) for name in classes)
        and all(isinstance(row, list) and len(row) == len(classes) and all(map(_is_count, row)) for row in counts)
    )


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "stopped": lambda value: isinstance(value, bool),
    **dict.fromkeys(("rows", "rows_seen", "epochs", "world_size"), _is_count),
    **dict.fromkeys(("seconds", "samples_per_second"), _is_number),
    "rows_of_ranks": lambda value: isinstance(value, list) and all(map(_is_count, value)),
    **dict.fromkeys(("share_of_ideal", "balanced"), lambda value: value is None or _is_number(value)),
    "lost": lambda value: value is None or (_are_numbers(value) and "communication" in value),
    "times": _are_numbers,
    "wall": _is_number,
    "profile": lambda value: isinstance(value, list) and all(map(_are_numbers, value)),
}
"""The fields that are read of every summary, each with its check; those of a finished run follow, and those that it has
besides for two classes."""
_MEASURES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys((*MEASURES, *CALIBRATION), _is_number),
    "confusion": _is_confusion,
}
_MEASURES_OF_TWO: Mapping[str, Callable[[Any], bool]] = dict.fromkeys(MEASURES_OF_TWO, _is_number)
_OF_WORDS: Mapping[str, Callable[[Any], bool]] = {
    "vocabulary": _is_count,
    "words_a_row": _is_number,
    "loss": _is_number,
}
_ADVICE = "look into the logs beside it for what wrote it, and train again"
