"""How a training run ended, by its summary.

The easy mistake is to believe a summary: a run on a deployment wrote it on a node, where others may write, too.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bootstrap.errors import ShoalError
from trainer.output.files import SUMMARY


def read_summary(folder: Path) -> dict[str, Any] | None:
    """What a run's summary.json says, or nothing when the run has not written one.

    Raises ShoalError for one that lacks what is read of it: that of a deployment's run was written on a node.
    """
    path = folder / SUMMARY
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ShoalError(f"{path} is no summary of a training: it is damaged; {_DISTRUST}")
    fields = _FIELDS if content.get("stopped") is True else {**_FIELDS, **_MEASURES}
    for name, is_fit in fields.items():
        if name not in content or not is_fit(content[name]):
            raise ShoalError(f"{path} is no summary of a training: it lacks a fit '{name}'; {_DISTRUST}")
    return content


def _is_count(value: Any) -> bool:
    return type(value) is int


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "stopped": lambda value: isinstance(value, bool),
    **dict.fromkeys(("rows", "rows_seen", "epochs", "world_size"), _is_count),
    **dict.fromkeys(("seconds", "samples_per_second"), _is_number),
    **dict.fromkeys(
        ("rows_of_ranks", "rows_claimed"), lambda value: isinstance(value, list) and all(map(_is_count, value))
    ),
    **dict.fromkeys(("share_of_ideal", "balanced"), lambda value: value is None or _is_number(value)),
    "lost": lambda value: value is None or (_are_numbers(value) and "communication" in value),
    "times": _are_numbers,
    "wall": _is_number,
    "profile": lambda value: isinstance(value, list) and all(map(_are_numbers, value)),
}
"""What is read of a summary, with what it must be; and of one of a run that came to its end, besides:"""
_MEASURES: Mapping[str, Callable[[Any], bool]] = dict.fromkeys(
    ("accuracy", "balanced_accuracy", "f1_positive", "f1_negative", "majority"), _is_number
)
_DISTRUST = "find out from the logs beside it who wrote it so, and train again"
