"""Parses JSON objects, also as instances of dataclasses (checked_values.py)."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeVar

from common.checked_values import adapter, describe
from common.errors import DataError

_Kind = TypeVar("_Kind")


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


def from_json(kind: type[_Kind], written: Mapping[str, Any]) -> _Kind:
    """Return an instance of the dataclass `kind` with the values of a JSON object.

    Converts lists to tuples and nested objects to dataclasses, as the fields' types require. Raises DataError for an
    unknown or missing field, for a wrong type and for a violated condition.
    """
    from pydantic import ValidationError  # here, because the help of commands does not need it

    reader = adapter(kind)  # type: ignore[arg-type]  # mypy: a type is not Hashable
    try:
        found: _Kind = reader.validate_json(json.dumps(written, allow_nan=False), strict=True, extra="forbid")
    except ValidationError as error:
        raise DataError(describe(error)) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"it is not JSON: {error}") from error
    return found


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
