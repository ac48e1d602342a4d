"""Parses JSON objects and checks their values against the fields of a dataclass.

Do not compare such values by `==` or `isinstance`: Python takes 4.0 and True for row lengths.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
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

    A list becomes a tuple where its field is one, and an object a dataclass.
    """
    known = {entry.name: entry for entry in fields(kind)}  # type: ignore[arg-type]
    values = {name: _built(value, known[name].type) if name in known else value for name, value in written.items()}
    require_fields(kind, values)
    for name, entry in known.items():
        if name not in values and entry.default is MISSING and entry.default_factory is MISSING:
            raise DataError(f"{name} is missing")
    return kind(**values)


def _built(value: Any, kind: Any) -> Any:
    """A value as a field of this type has it; one of another type stays as it is."""
    if isinstance(kind, UnionType):
        kind = next((each for each in get_args(kind) if is_dataclass(each) or get_origin(each)), None)
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(value, dict) and is_dataclass(kind):
        return made(kind, value)  # type: ignore[arg-type]
    if isinstance(value, dict) and origin is Mapping:
        return {name: _built(each, parts[1]) for name, each in value.items()}
    if isinstance(value, list) and origin is tuple:
        return tuple(_built(each, parts[0]) if parts[1:] == (...,) else each for each in value)
    return value


def _has_type(value: Any, kind: Any) -> bool:
    if isinstance(kind, UnionType):
        return any(_has_type(value, each) for each in get_args(kind))
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        kinds = [parts[0]] * len(value) if parts[1:] == (...,) and isinstance(value, (list, tuple)) else list(parts)
        return isinstance(value, (list, tuple)) and len(value) == len(kinds) and all(map(_has_type, value, kinds))
    if origin is Mapping:
        return type(value) is dict and all(_has_type(each, parts[1]) for each in value.values())
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
