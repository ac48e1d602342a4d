"""Options as data: declares and checks fields of a dataclass that become options on a command line.

A section is a dataclass of related options, or of sections. The metadata of a field, from `option`, contains the help
text and the rules. `options` lists all options for a front end such as command_line.py.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, cast, get_args

from common.errors import TrainingError
from common.json_values import Bound
from common.options import Option, flag

AT_LEAST_0 = Bound("at least 0", lambda value: value >= 0)
AT_LEAST_1 = Bound("at least 1", lambda value: value >= 1)
ABOVE_0 = Bound("above 0", lambda value: value > 0)
SHARE = Bound("at least 0 and below 1", lambda value: 0 <= value < 1)
_FINITE = Bound("a finite number", lambda value: not isinstance(value, float) or math.isfinite(value))
_MOST = 10**12
_COMPUTABLE = Bound(
    f"from -{_MOST:,} to {_MOST:,}", lambda value: not isinstance(value, (int, float)) or abs(value) <= _MOST
)


def from_1_to(most: int) -> Bound:
    """Return the condition that a number is from 1 to `most`."""
    return Bound(f"from 1 to {most}", lambda value: 1 <= value <= most)


def option(text: str, *, default: Any = MISSING, factory: Any = MISSING, must: Bound | None = None, **how: Any) -> Any:
    """Return a dataclass field that is an option. `how`: further attributes of `common.options.Option`.

    `kind` converts the text of a value, if calling the field's type is not enough. Most training options are
    `advanced`. `group`: the heading, if it is not the section's title. `setting`: the constructor of a text classifier
    takes the value. Without a text, the field is not an option.
    """
    usual = {"choices": (), "kind": None, "advanced": True, "group": None, "setting": False}
    metadata = {"text": text, "must": must, **usual, **how}
    return field(default=default, default_factory=factory, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Group of related options. Raises TrainingError for invalid values."""

    title: ClassVar[str] = ""
    last: ClassVar[tuple[str, ...]] = ()
    """Names of the options that follow those of subclasses."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value, choices, must = getattr(self, entry.name), entry.metadata["choices"], entry.metadata["must"]
            if value is None:
                continue
            self._require(entry.name, _FINITE.holds(value), _FINITE.words)
            self._require(entry.name, _COMPUTABLE.holds(value), _COMPUTABLE.words)
            if must:
                self._require(entry.name, must.holds(value), must.words)
            if choices:
                self._require(entry.name, value in choices, f"one of {', '.join(map(str, choices))}")

    def _require(self, name: str, holds: bool, words: str) -> None:
        if not holds:
            raise TrainingError(f"{flag(name)} is {self.plain()[name]}, but must be {words}")

    def values(self) -> dict[str, Any]:
        """Return the values of the fields. A field that is a section is replaced by its fields."""
        flat: dict[str, Any] = {}
        for name, value in vars(self).items():
            flat |= value.values() if isinstance(value, Section) else {name: value}
        return flat

    def plain(self) -> dict[str, Any]:
        """Return `values` as types that JSON and checkpoints can contain."""
        return {name: _plain(value) for name, value in self.values().items()}


def options(kind: type[Section], **sections: type[Section]) -> list[Option]:
    """Return all options of a section. Each of `sections`, keyed by field, takes the place of its field."""
    listed: list[Option] = []
    for entry in sorted(fields(kind), key=lambda entry: entry.name in kind.last):
        if entry.name in sections:
            listed += options(sections[entry.name])
        elif entry.metadata["text"]:
            listed.append(_option_of(entry, kind.title))
    return listed


def _option_of(entry: "Field[Any]", title: str) -> Option:
    described = {name: value for name, value in entry.metadata.items() if name not in ("must", "setting")}
    types = [each for each in get_args(entry.type) if each is not NoneType]
    described["kind"] = described["kind"] or cast(Any, types[0] if types else entry.type)
    described["group"] = described["group"] or title
    required = entry.default is MISSING and entry.default_factory is MISSING
    default = None if entry.default is MISSING else entry.default
    return Option(name=entry.name, required=required, default=default, **described)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): str(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return value
