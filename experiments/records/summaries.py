"""Reads the summary of a training run and checks it, because others may write where a deployment's nodes write."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from common.errors import ShoalError
from trainer.classification.metrics import CALIBRATION, MEASURES, MEASURES_OF_TWO
from trainer.output.run_files import SUMMARY


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
