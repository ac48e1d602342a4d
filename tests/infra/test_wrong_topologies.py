"""Tests of the message for each mistake in a topology."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from infra import topology
from infra.topology_error import TopologyError
from tests.infra.variants import SHIPPED

WRONG: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("wrong_topologies.yaml").read_text("utf-8"))

RIGHT = Path(__file__).with_name("right_topology.yaml").read_text("utf-8")


def write(folder: Path, text: str) -> Path:
    folder = folder / "topologies"
    folder.mkdir()
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    return folder


def text_of(case: dict[str, Any]) -> str:
    if "file" in case:
        return str(case["file"])
    lines = RIGHT.splitlines()
    lines[case["line"] - 1] = case["written"]
    return "\n".join(lines) + "\n"


def test_the_base_of_the_wrong_topologies_is_right(tmp_path: Path) -> None:
    assert topology.load("mine", write(tmp_path, RIGHT)).gpu_nodes == 3


@pytest.mark.parametrize("case", WRONG, ids=[str(each.get("written", each.get("file"))).strip() for each in WRONG])
def test_a_fault_is_one_sentence_with_file_line_field_and_what_to_do(tmp_path: Path, case: dict[str, Any]) -> None:
    with pytest.raises(TopologyError) as caught:
        topology.load("mine", write(tmp_path, text_of(case)))
    separator = ", " if case["said"].startswith("line ") else " "
    assert str(caught.value) == f"topologies/mine.yaml{separator}{case['said']}"


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, RIGHT)
    (folder / "mine.yaml").write_bytes(b"description: \xff\n")
    with pytest.raises(TopologyError, match=r"topologies/mine\.yaml is not UTF-8 text; save it as UTF-8\."):
        topology.load("mine", folder)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300)
@given(st.sampled_from(RIGHT.splitlines()), ANYTHING)
def test_any_value_is_accepted_or_refused_in_one_sentence(line: str, value: Any) -> None:
    written = line.partition(":")[0] + ": " + json.dumps(value)
    said = "topologies/mine.yaml"
    with tempfile.TemporaryDirectory() as folder:
        try:
            topology.load("mine", write(Path(folder), RIGHT.replace(line, written)))
        except TopologyError as error:
            said = str(error)
    assert said.startswith("topologies/mine.yaml")
    assert len(said.splitlines()) == 1


def test_more_tags_than_aws_allows_are_refused(tmp_path: Path) -> None:
    tags = ", ".join(f"t{number}: x" for number in range(31))
    with pytest.raises(TopologyError, match=r"line 5: tags is a mapping, but must be at most 30 tags for all "):
        topology.load("mine", write(tmp_path, RIGHT.replace("project: reviews", tags)))


def test_an_unknown_topology_names_the_nearest() -> None:
    with pytest.raises(TopologyError, match=r"There is no topology 'demmo' in topologies/; did you mean demo\?"):
        topology.load("demmo", SHIPPED)


def test_an_error_without_a_similar_name_lists_all_topologies(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="there are: mine"):
        topology.load("qqqq", write(tmp_path, RIGHT))


def test_a_name_does_not_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="There is no topology"):
        topology.load("../mine", write(tmp_path, RIGHT))
