import json
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from infra import topology
from infra.topology_error import TopologyError

WRONG = yaml.safe_load(Path(__file__).with_name("wrong_topologies.yaml").read_text("utf-8"))

RIGHT = Path(__file__).with_name("right_topology.yaml").read_text("utf-8")


def write(folder, text):
    folder = folder / "topologies"
    folder.mkdir()
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return folder


def text_of(case):
    if "file" in case:
        return str(case["file"])
    lines = RIGHT.splitlines()
    lines[case["line"] - 1] = case["written"]
    return "\n".join(lines) + "\n"


def test_the_base_of_the_wrong_topologies_is_right(tmp_path):
    assert topology.load("mine", write(tmp_path, RIGHT)).gpu_nodes == 3


def label(case):
    """Return a short id of a case: what is written there."""
    text = case["written"] if "written" in case else case["file"].removeprefix("description: x")
    return " ".join(text.split())[:70] or f"without line {case.get('line')}"


@pytest.mark.parametrize("case", WRONG, ids=label)
def test_a_fault_is_one_sentence_with_file_line_field_and_what_to_do(tmp_path, case, messages):
    with messages.raises(TopologyError) as refusal:
        topology.load("mine", write(tmp_path, text_of(case)))
    assert str(refusal.value).startswith("topologies/mine.yaml")
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_text_is_named(tmp_path, messages):
    folder = write(tmp_path, RIGHT)
    (folder / "mine.yaml").write_bytes(b"description: \xff\n")
    with messages.raises(TopologyError):
        topology.load("mine", folder)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300)
@given(st.sampled_from(RIGHT.splitlines()), ANYTHING)
def test_any_value_is_accepted_or_refused_in_one_sentence(line, value):
    written = line.partition(":")[0] + ": " + json.dumps(value)
    said = "topologies/mine.yaml"
    with tempfile.TemporaryDirectory() as folder:
        try:
            topology.load("mine", write(Path(folder), RIGHT.replace(line, written)))
        except TopologyError as error:
            said = str(error)
    assert said.startswith("topologies/mine.yaml")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["mien", "qqqq", "../mine"], ids=["similar", "different", "above"])
def test_an_unknown_topology_names_the_nearest_or_all_and_does_not_leave_the_folder(name, tmp_path, messages):
    with messages.raises(TopologyError) as refusal:
        topology.load(name, write(tmp_path, RIGHT))
    assert "mine" in str(refusal.value)
