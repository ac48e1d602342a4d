"""Declares conditions on values, checks values against them, and describes a value that violates its declaration.

A field is declared as `count: Annotated[int, within(1, 9)]`. Pydantic checks its type and condition, in strict mode:
4.0 and True are not integers. Pydantic is imported at the first check. So `--help`, which shows declared options, does
not load it.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from common.errors import DataError, ReportedError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
    from pydantic_core import CoreSchema, ErrorDetails

Location = tuple[str | int, ...]

_MOST_SHOWN = 60
"""Maximum number of characters of a value that a message shows."""
_IS = "Input should be "
"""Beginning of pydantic's message about a wrong type."""
_ERROR = "Value error, "
"""Beginning of pydantic's message about an error that a validator raised."""
_WORDS = {
    **dict.fromkeys(("dataclass_type", "dict_type", "model_type"), "an object"),
    "too_long": "at most {max_length} long",
}
"""Our words for kinds of errors for which pydantic's message names a class of Python."""
_UNKNOWN, _MISSING = ("extra_forbidden", "unexpected_keyword_argument"), "missing"


@dataclass(frozen=True)
class Must:
    """Condition on a value, in its type's annotation. `words` describes it in a message, after `must be`."""

    words: str
    holds: Callable[[Any], object]
    choices: tuple[str, ...] = ()
    """The allowed values, if they are few."""

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import PydanticCustomError, core_schema

        def check(value: Any) -> Any:
            if not self.holds(value):
                raise PydanticCustomError("must", "{words}", {"words": self.words})
            return value

        return core_schema.no_info_after_validator_function(check, handler(source))


def within(least: float, most: float) -> Must:
    """Return a condition on numbers: from `least` to `most`, both included."""
    return Must(f"{least:,} to {most:,}", lambda value: least <= value <= most)


def of_length(least: int, most: int) -> Must:
    """Return a condition on strings and tuples: a length from `least` to `most`, both included."""
    return Must(f"{least:,} to {most:,} long", lambda value: least <= len(value) <= most)


def matching(words: str, pattern: re.Pattern[str]) -> Must:
    """Return a condition on strings: the whole string must match the pattern. `words` describes the pattern."""
    return Must(words, pattern.fullmatch)


def one_of(values: Collection[str]) -> Must:
    return Must(f"one of {', '.join(map(repr, values))}", values.__contains__, tuple(values))


def spell_location(location: Location) -> str:
    """Format a location for messages, such as `training 2, count`. Indexes count from 1."""
    text = ""
    for step in location:
        if step == "[key]":  # pydantic appends this to the location of a mapping's key
            continue
        text += f" {step + 1}" if isinstance(step, int) else f"{', ' if text else ''}{step}"
    return text


def show(value: Any) -> str:
    """Format a value for messages."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


@cache
def adapter(kind: Any) -> "TypeAdapter[Any]":
    """Return pydantic's reader of a dataclass. Creating it takes about a millisecond."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


@cache
def _fields_adapter(kind: type[Any]) -> "TypeAdapter[Any]":
    """Return pydantic's check of some fields of a dataclass, in a dictionary."""
    from typing_extensions import TypedDict

    new_type: Any = TypedDict  # for mypy, which knows only types with literal fields
    some = new_type(kind.__name__, {each.name: each.type for each in fields(kind)}, total=False)
    some.__pydantic_config__ = {"allow_inf_nan": False}
    return adapter(some)


def require_fields(
    kind: type[Any],
    values: Mapping[str, Any],
    error: type[ReportedError] = DataError,
    spell: Callable[[Location], str] = spell_location,
) -> None:
    """Raise `error` unless all names are fields of the dataclass and all values satisfy their declarations.

    `spell` returns the name of a field in the message.
    """
    from pydantic import ValidationError

    try:
        of_fields = _fields_adapter(kind)  # type: ignore[arg-type]  # mypy: a type is not Hashable
        of_fields.validate_python(dict(values), strict=True, extra="forbid")
    except ValidationError as violations:
        raise error(describe(violations, spell)) from violations


def describe(error: "ValidationError", spell: Callable[[Location], str] = spell_location) -> str:
    """Return a sentence about one violation, without a full stop. `spell` returns the name of a field."""
    first = first_violation(error)
    location, message, words = first["loc"], first["msg"], _WORDS.get(first["type"])
    name = spell(location) or "it"
    if first["type"] in _UNKNOWN:
        return f"{location[-1]!r} is not a known field" + (f" of {spell(location[:-1])}" if location[1:] else "")
    if first["type"] == _MISSING:
        return f"{name} is missing"
    if words is None and first["type"] != "must" and not message.startswith(_IS):
        return f"{name}: {message.removeprefix(_ERROR)}"
    must = words.format(**first.get("ctx", {})) if words else message.removeprefix(_IS)
    return f"{name} is {show(first['input'])}, but must be {must}"


def first_violation(error: "ValidationError") -> "ErrorDetails":
    """Return the violation to report: an unknown field first, and a missing field last.

    An unknown field is often a misspelling of the missing one.
    """
    return min(error.errors(), key=lambda each: (each["type"] not in _UNKNOWN, each["type"] == _MISSING))
