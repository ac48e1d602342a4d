"""Parses JSON objects and checks their values against the fields of a dataclass.

Do not compare such values by `==` or `isinstance`: Python takes 4.0 and True for row lengths.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin

from common.errors import DataError

_Kind = TypeVar("_Kind")


def parse_json_object(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object; bytes are UTF-8. Raises DataError for anything else, for numbers that 64 bits cannot hold,
    for NaN and infinities, and for lone surrogates."""
    try:
        text = text if isinstance(text, str) else text.decode()
        found = json.loads(text, parse_constant=_refuse_constant, parse_float=_float, parse_int=_integer)
        if "\\u" in text or not text.isascii():
            json.dumps(found, ensure_ascii=False).encode()  # lone surrogates
    except (ValueError, RecursionError) as error:
        raise DataError(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise DataError("it is not a JSON object")
    return found


def require_fields(kind: type[Any], values: Mapping[str, Any]) -> None:
    """Raise DataError unless all names are fields of the dataclass and all values have their types.

    A list counts as a tuple.
    """
    types = {entry.name: entry.type for entry in fields(kind)}
    for name, value in values.items():
        if name not in types:
            raise DataError(f"{name!r} is not a known field")
        if not _has_type(value, types[name]):
            raise DataError(f"{name} is not of type {getattr(types[name], '__name__', types[name])}")


def made(kind: type[_Kind], written: Mapping[str, Any]) -> _Kind:
    """An object of the dataclass. Raises DataError where a value is unknown, missing, or of another type.

    A list becomes a tuple, unless its field is a list.
    """
    require_fields(kind, written)
    values = dict(written)
    for entry in fields(kind):  # type: ignore[arg-type]
        if entry.name not in values:
            if entry.default is MISSING and entry.default_factory is MISSING:
                raise DataError(f"{entry.name} is missing")
        elif isinstance(values[entry.name], list) and get_origin(entry.type) is not list:
            values[entry.name] = tuple(values[entry.name])
    return kind(**values)


def _has_type(value: Any, kind: Any) -> bool:
    if isinstance(kind, UnionType):
        return any(_has_type(value, each) for each in get_args(kind))
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        kinds = [parts[0]] * len(value) if parts[1:] == (...,) and isinstance(value, (list, tuple)) else list(parts)
        return isinstance(value, (list, tuple)) and len(value) == len(kinds) and all(map(_has_type, value, kinds))
    if kind is NoneType or kind is None:
        return value is None
    if kind is float:
        return type(value) in (int, float)
    return type(value) is (origin or kind)


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
