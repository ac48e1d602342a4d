"""Parses JSON objects, and checks their values against the types and declared bounds of a dataclass's fields.

A field with a bound is declared as `count: Annotated[int, within(1, 9)]`.

Do not check types with `==` or `isinstance`. In Python, 4.0 equals 4 and True is an int, so both would pass as a number
of rows.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from common.errors import DataError

_Kind = TypeVar("_Kind")
_UNIONS = (UnionType, Union)
_MUST = ", but must be "
_MOST_SHOWN = 80
"""Maximum number of characters of a value that a message shows."""


class Bound(NamedTuple):
    """Condition on the value of a field. `words` describes it in a message, after `must be`."""

    words: str
    holds: Callable[[Any], bool]


def within(least: float, most: float) -> Bound:
    """Return a bound for numbers: from `least` to `most`, both included."""
    return Bound(f"{least:,} to {most:,}", lambda value: least <= value <= most)


def of_length(least: int, most: int) -> Bound:
    """Return a bound for strings and tuples: a length from `least` to `most`, both included."""
    return Bound(f"{least:,} to {most:,} long", lambda value: least <= len(value) <= most)


def matching(words: str, pattern: re.Pattern[str]) -> Bound:
    """Return a bound for strings: the whole string must match the pattern. `words` describes the pattern."""
    return Bound(words, lambda value: pattern.fullmatch(value) is not None)


def one_of(values: Collection[str]) -> Bound:
    return Bound(f"one of {', '.join(repr(each) for each in values)}", lambda value: value in values)


def finite_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are finite numbers, by name."""
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    }


def parse_json_object(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object, given as a string or as UTF-8 bytes.

    Raises DataError for any other JSON value, and for an object with duplicate names, numbers beyond 64 bits, NaN,
    infinities or lone surrogates.
    """
    try:
        text = text if isinstance(text, str) else text.decode()
        found = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_float, parse_int=_integer, object_pairs_hook=_object
        )
        if "\\u" in text or not text.isascii():
            json.dumps(found, ensure_ascii=False).encode()  # raises for lone surrogates
    except (ValueError, RecursionError) as error:
        raise DataError(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise DataError("it is not a JSON object")
    return found


def require_fields(kind: type[Any], values: Mapping[str, Any]) -> None:
    """Raise DataError unless all names are fields of the dataclass and all values satisfy their types and bounds.

    A list is accepted where a field is a tuple.
    """
    known = _fields(kind)  # type: ignore[arg-type]  # mypy: a type is not Hashable
    for name, value in values.items():
        if name not in known:
            raise DataError(f"{name!r} is not a known field")
        if fault := _fault(value, known[name].type):
            raise DataError(f"{name} {fault}")


def from_json(kind: type[_Kind], written: Mapping[str, Any]) -> _Kind:
    """Return an instance of the dataclass `kind` with the values of a JSON object.

    Converts lists to tuples and nested objects to dataclasses, as the fields' types require. Raises DataError for an
    unknown or missing field and for a wrong type.
    """
    known = _fields(kind)  # type: ignore[arg-type]  # mypy: a type is not Hashable
    values = {name: _built(value, known[name].type) if name in known else value for name, value in written.items()}
    require_fields(kind, values)
    for name, entry in known.items():
        if name not in values and entry.default is MISSING and entry.default_factory is MISSING:
            raise DataError(f"{name} is missing")
    return kind(**values)


@cache
def _fields(kind: type[Any]) -> Mapping[str, Field[Any]]:
    return {entry.name: entry for entry in fields(kind)}


@cache
def _anatomy(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the origin and the arguments of a type. An agent asks for them hundreds of times per second."""
    return get_origin(kind), get_args(kind)


def _built(value: Any, kind: Any) -> Any:
    """Convert a list or an object of JSON to the tuple or dataclass that a field's type requires.

    Return other values unchanged.
    """
    origin, parts = _anatomy(kind)
    if origin in _UNIONS:
        kind = next((each for each in parts if is_dataclass(each) or get_origin(each)), None)
        origin, parts = _anatomy(kind)
    if origin is Annotated:
        kind = parts[0]
        origin, parts = _anatomy(kind)
    if isinstance(value, dict) and is_dataclass(kind):
        return from_json(kind, value)  # type: ignore[arg-type]
    if isinstance(value, dict) and origin is Mapping:
        return {name: _built(each, parts[1]) for name, each in value.items()}
    if isinstance(value, list) and origin is tuple:
        return tuple(_built(each, parts[0]) if parts[1:] == (...,) else each for each in value)
    return value


def _fault(value: Any, kind: Any) -> str:
    """Return why a value is invalid, as a predicate to put after the field's name, or "" if the value is valid."""
    origin, parts = _anatomy(kind)
    if origin in _UNIONS:
        faults = [_fault(value, each) for each in parts]
        others = [fault for fault, each in zip(faults, parts, strict=True) if each is not NoneType]
        if "" in faults or (len(others) == 1 and _MUST in others[0]):
            return "" if "" in faults else others[0]
    elif origin is Annotated:
        if fault := _fault(value, parts[0]):
            return fault
        broken = next((each.words for each in kind.__metadata__ if not each.holds(value)), None)
        return "" if broken is None else f"is {_shown(value)}{_MUST}{broken}"
    elif origin is tuple and isinstance(value, (list, tuple)):
        kinds = [parts[0]] * len(value) if parts[1:] == (...,) else list(parts)
        faults = [fault for fault in map(_fault, value, kinds) if fault] if len(value) == len(kinds) else [""]
        if not faults or _MUST in faults[0]:
            return "".join(f"has an element that {fault}" for fault in faults[:1])
    elif origin is Mapping and type(value) is dict:
        faults = [fault for pair in value.items() for fault in map(_fault, pair, parts) if fault]
        if not faults or _MUST in faults[0]:
            return "".join(f"has a key or value that {fault}" for fault in faults[:1])
    elif type(value) in (int, float) if kind is float else type(value) is (origin or kind):
        return ""
    return f"is not of type {_name(kind)}"


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}..."


def _name(kind: Any) -> str:
    if get_origin(kind) in _UNIONS:
        return " | ".join(map(_name, get_args(kind)))
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return "None" if kind is NoneType else str(getattr(kind, "__name__", kind))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("an object has a duplicate name")
    return found


def _float(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError("a number is too large")
    return number


def _integer(text: str) -> int:
    if not -(1 << 63) <= (number := int(text)) < 1 << 63:
        raise ValueError("a number is too large")
    return number


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
