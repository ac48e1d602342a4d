"""Tests of the YAML loader: plain values, and errors with a line for unsupported YAML."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra import document
from infra.strict_yaml import MOST_BYTES, StrictLoader
from infra.topology_error import TopologyError


def loaded(text: str) -> Any:
    return yaml.load(text, StrictLoader)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("one: &one [1]\ntwo: *one\n", r"line 2: aliases are not supported; repeat the aliased part"),
        ("all: &all\n  again: *all\n", r"line 2: aliases"),
        ("x: !!int abc\n", r"line 1: tags, such as !!int, are not supported; remove the tag"),
        ("a: 1\nx: !!float abc\n", r"line 2: tags"),
        ("x: !!python/object/apply:os.system [ls]\n", r"line 1: tags"),
        (f"x: {'9' * 5000}\n", r"line 1: a number has more than 18 digits"),
        (f"x: {'9' * 10_001}a\n", r"line 1: a string is longer than 10,000 characters"),
        ("x: " + "[" * 1000 + "]" * 1000, r"line 1: the file has more than 50 nested levels"),
        ("# " + "x" * MOST_BYTES, r"has more than 262,144 bytes; a topology is a few lines of YAML"),
    ],
    ids=["alias", "itself", "int", "float", "object", "digits", "text", "depth", "size"],
)
def test_unsupported_yaml_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(TopologyError, match=sentence):
        document.read(tmp_path / "own.yaml", "own.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-13-45", "2024-13-45"),
        ("2024-12-31", "2024-12-31"),
        ("1:30:00", "1:30:00"),
        ("012345678901", "012345678901"),
        ("0x1F", "0x1F"),
        ("1_000", 1000),
        ("-3", -3),
        ("2.5", 2.5),
        (".5", 0.5),
        ("1e5", 100_000.0),
        ("yes", True),
        ("false", False),
        ("~", None),
        ("-.inf", -math.inf),
    ],
)
def test_plain_values_have_the_expected_type(text: str, value: object) -> None:
    found = loaded(text)
    assert found == value
    assert type(found) is type(value)


words = st.text("abcTRUEnulyes äß:#-,[]{}!&*", max_size=20)
simple = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | words


@given(
    st.dictionaries(
        words,
        st.recursive(simple, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner)),
    )
)
def test_dumped_data_is_loaded_unchanged(data: dict[str, Any]) -> None:
    assert loaded(yaml.safe_dump(data)) == data


def test_unprintable_characters_are_escaped() -> None:
    assert (
        str(document._error("my.yaml", 3, "no \x1b[1m or \u202e here."))
        == r"my.yaml, line 3: no \x1b[1m or \u202e here."
    )
