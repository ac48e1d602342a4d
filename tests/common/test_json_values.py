"""Values of JSON objects are those of a dataclass's fields, or refused by the field's name."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from common.errors import DataError
from common.json_values import made, parse_json_object


@dataclass(frozen=True)
class Values:
    count: int
    share: float = 0.5
    name: str | None = None
    pair: tuple[int, str] = (1, "a")
    several: tuple[str, ...] = ()
    listed: list[int] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": [1, 2.5, null, "\\u00e9"]}', {"a": [1, 2.5, None, "\u00e9"]}),
        (f'{{"a": [{-(2**63)}, {2**63 - 1}, 1e308]}}', {"a": [-(2**63), 2**63 - 1, 1e308]}),
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        *((f'{{"a": {value}}}', "NaN|Infinity") for value in ("NaN", "Infinity", "-Infinity")),
        *((f'{{"a": {value}}}', "too large") for value in ("1e999", 2**63, -(2**63) - 1)),
        ('{"a": "\\ud800"}', "not JSON"),
        ('{"a": ' + "[" * 60_000, "not JSON"),
    ],
)
def test_an_object_is_parsed_or_refused(text: str, found: dict[str, Any] | str) -> None:
    if isinstance(found, dict):
        assert parse_json_object(text) == found
    else:
        with pytest.raises(DataError, match=found):
            parse_json_object(text)


def test_lists_become_tuples_where_the_field_is_no_list() -> None:
    written = {"count": 1, "share": 1, "pair": [2, "b"], "several": ["x"], "listed": [3], "numbers": {"a": 4}}
    assert made(Values, written) == Values(1, 1, None, (2, "b"), ("x",), [3], {"a": 4})
    assert made(Values, {"count": 1, "name": "a"}) == Values(1, name="a")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("count", 4.0), ("count", True), ("count", None), ("share", True), ("share", "1"), ("name", 1)),
        *(("pair", [1]), ("pair", ["a", 1]), ("pair", 1), ("several", "text"), ("several", ["x", 1]), ("listed", ())),
        ("numbers", []),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(DataError, match=f"^{name} is not of type"):
        made(Values, {"count": 1, name: value})


@pytest.mark.parametrize(("written", "wrong"), [({}, "count is missing"), ({"count": 1, "x": 1}, "'x' is not a known")])
def test_missing_and_unknown_fields_are_refused(written: dict[str, Any], wrong: str) -> None:
    with pytest.raises(DataError, match=wrong):
        made(Values, written)
