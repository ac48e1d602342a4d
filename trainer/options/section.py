"""Options as data: declares and checks fields of a dataclass that become options on a command line.

A section is a dataclass of related options, or of sections. The type of a field has the conditions on its values
(common/checked_values.py). Its metadata, from `option`, has the help text. `options` lists all options for a front end
such as command_line.py.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from common.checked_values import Location, Must, require_fields, within
from common.errors import TrainingError
from common.options import Option, flag

_COMPUTABLE = within(0, 10**12)
Count = Annotated[int, Must("at least 1", lambda count: count >= 1), _COMPUTABLE]
NonNegative = Annotated[float, Must("at least 0", lambda number: number >= 0), _COMPUTABLE]
Positive = Annotated[float, Must("above 0", lambda number: number > 0), _COMPUTABLE]
Share = Annotated[float, Must("at least 0 and below 1", lambda share: 0 <= share < 1)]


def option(text: str, *, default: Any = MISSING, factory: Any = MISSING, **how: Any) -> Any:
    """Return a dataclass field that is an option. `how`: further attributes of `common.options.Option`.

    `kind` converts the text of a value, if calling the field's type is not enough. Most training options are
    `advanced`. `group`: the heading, if it is not the section's title. `setting`: the constructor of a text classifier
    takes the value. Without a text, the field is not an option.
    """
    usual = {"kind": None, "advanced": True, "group": None, "setting": False}
    return field(default=default, default_factory=factory, metadata={"text": text, **usual, **how})


@dataclass(frozen=True, kw_only=True)
class Section:
    """Group of related options. Raises TrainingError for invalid values."""

    title: ClassVar[str] = ""
    last: ClassVar[tuple[str, ...]] = ()
    """Names of the options that follow those of subclasses."""

    def __post_init__(self) -> None:
        require_fields(type(self), vars(self), TrainingError, _flag_of)

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
    """Return the description of a field. Its type has the function that converts a text, and the choices."""
    kind: Any = entry.type
    choices: tuple[str, ...] = ()
    while parts := get_args(kind):  # of `Annotated[str, one_of(...)] | None`
        choices = next((each.choices for each in parts if isinstance(each, Must)), choices)
        kind = parts[0]
    described = {name: value for name, value in entry.metadata.items() if name != "setting"}
    described["kind"] = described["kind"] or kind
    described["group"] = described["group"] or title
    required = entry.default is MISSING and entry.default_factory is MISSING
    default = None if entry.default is MISSING else entry.default
    return Option(name=entry.name, required=required, default=default, choices=choices, **described)


def _flag_of(location: Location) -> str:
    return flag(str(location[0]))


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): str(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return value
