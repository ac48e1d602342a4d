"""JSON values are checked against a dataclass; errors name the field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

from common.checked_values import matching, of_length, one_of, within
from common.errors import DataError
from common.json_values import from_json, parse_json_object

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("json_values.yaml").read_text())


Letters = Annotated[str, matching("letters", re.compile("[a-z]+"))]


@dataclass(frozen=True)
class Values:
    count: int
    share: float = 0.5
    name: str | None = None
    pair: tuple[int, str] = (1, "a")
    several: tuple[str, ...] = ()
    listed: list[int] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    bounded: Annotated[int, within(1, 9)] | None = None
    words: Annotated[tuple[Letters, ...], of_length(0, 2)] = ()
    places: Mapping[Letters, str] = field(default_factory=dict)
    side: Annotated[str, one_of(("left", "right"))] = "left"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.get("text", row.get("values"))))
def test_json_values_are_accepted_or_refused_with_a_message(row, messages) -> None:
    if "text" in row and "values" in row:
        assert parse_json_object(row["text"]) == row["values"]
        return
    with messages.raises(DataError):
        parse_json_object(row["text"]) if "text" in row else from_json(Values, row["values"])


def test_too_deep_nesting_is_refused() -> None:
    with pytest.raises(DataError, match="not JSON"):
        parse_json_object('{"a": ' + "[" * 60_000)


def test_lists_become_tuples_unless_the_field_is_a_list() -> None:
    written = {"count": 1, "share": 1, "pair": [2, "b"], "several": ["x"], "listed": [3], "numbers": {"a": 4}}
    assert from_json(Values, written) == Values(1, 1, None, (2, "b"), ("x",), [3], {"a": 4})
    assert from_json(Values, {"count": 1, "name": "a"}) == Values(1, name="a")
    bounded: dict[str, Any] = {"bounded": 9, "words": ["a", "b"], "places": {"a": "1"}, "side": "right"}
    assert from_json(Values, {"count": 1, **bounded}) == Values(1, **{**bounded, "words": ("a", "b")})
