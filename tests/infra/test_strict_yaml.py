import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra import document
from infra.document import MOST_BYTES, StrictLoader
from infra.topology_error import TopologyError


@pytest.mark.parametrize(
    "text",
    [
        "one: &one [1]\ntwo: *one\n",
        "all: &all\n  again: *all\n",
        "x: !!int abc\n",
        "a: 1\nx: !!float abc\n",
        "x: !!python/object/apply:os.system [ls]\n",
        f"x: {'9' * 5000}\n",
        f"x: {'9' * 10_001}a\n",
        "x: " + "[" * 1000 + "]" * 1000,
        "# " + "x" * MOST_BYTES,
    ],
    ids=["alias", "itself", "int", "float", "object", "digits", "text", "depth", "size"],
)
def test_unsupported_yaml_is_refused_in_one_sentence(tmp_path, text, messages):
    (tmp_path / "own.yaml").write_text(text)
    with messages.raises(TopologyError):
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
def test_plain_values_have_the_expected_type(text, value):
    found = yaml.load(text, StrictLoader)
    assert found == value
    assert type(found) is type(value)


words = st.text("abcTRUEnulyes äß:#-,[]{}!&*", max_size=20)
simple = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | words


@given(
    st.dictionaries(
        words, st.recursive(simple, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner))
    )
)
def test_dumped_data_is_loaded_unchanged(data):
    assert yaml.load(yaml.safe_dump(data), StrictLoader) == data


def test_unprintable_characters_are_escaped():
    shown = str(document._error("my.yaml", 3, "no \x1b[1m or \u202e here."))
    assert shown == r"my.yaml, line 3: no \x1b[1m or \u202e here."
