"""What a topology may say, and the one sentence for each thing that it may not."""

import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import topology
from infra.errors import TopologyError

SHIPPED = Path(__file__).resolve().parents[2] / "topologies"

WHOLE = """\
description: A mixed cluster
region: us-east-1
preprocessing:
  release: emr-7.13.0
  primary: {instance_type: m5.xlarge}
  core:
    instance_type: m5.xlarge
    count: 2
training:
  - instance_type: g5.xlarge
    count: 1
  - name: slow
    instance_type: g4dn.12xlarge
    count: 2
    gpus: 3
share: efs
"""


def write(folder: Path, text: str, name: str = "mine") -> Path:
    folder = folder / "topologies"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


def test_a_whole_topology_is_read_as_written(tmp_path: Path) -> None:
    found = topology.load("mine", write(tmp_path, WHOLE))
    assert found.name == "mine"
    assert found.preprocessing is not None
    assert found.preprocessing.core.count == 2
    assert found.share == "efs"
    assert found.retain_data is False


def test_a_group_is_named_after_its_type_and_uses_all_its_gpus_unless_told(tmp_path: Path) -> None:
    groups = topology.load("mine", write(tmp_path, WHOLE)).training
    assert [(group.name, group.gpus) for group in groups] == [("g5-xlarge", 1), ("slow", 3)]


def test_one_half_of_the_work_is_enough(tmp_path: Path) -> None:
    only = "description: x\ntraining:\n  - {instance_type: g4dn.12xlarge, count: 1}\n"
    found = topology.load("mine", write(tmp_path, only))
    assert found.preprocessing is None
    assert found.training[0].gpus == 4


def test_a_zone_is_one_of_the_region(tmp_path: Path) -> None:
    folder = write(tmp_path, WHOLE.replace("region: us-east-1", "region: eu-west-1\nzone: eu-west-1b"))
    assert topology.load("mine", folder).zone == "eu-west-1b"


def test_each_instance_type_is_listed_once(tmp_path: Path) -> None:
    found = topology.load("mine", write(tmp_path, WHOLE))
    assert topology.instance_types(found) == ["m5.xlarge", "g5.xlarge", "g4dn.12xlarge"]


@pytest.mark.parametrize("name", ["demo", "reference-3g3-1p2"])
def test_the_shipped_topologies_load(name: str) -> None:
    found = topology.load(name, SHIPPED)
    assert found.preprocessing is not None
    assert len(found.training) == 2
    assert found.share == "efs"


def test_every_shipped_file_is_a_topology_whose_name_can_name_a_deployment() -> None:
    for name in topology.names(SHIPPED):
        assert topology.stack_name(topology.load(name, SHIPPED).name) == f"Shoal-{name}"


# The line that is written instead, its number, and what is said about it.
FAULTS = [
    (2, "region: us-east1", "line 2: region: 'us-east1' is not an AWS region; did you mean us-east-1?"),
    (2, "region: 1", "line 2: region is 1, but must be an AWS region; the nearest is us-east-1."),
    (2, "regoin: us-east-1", "line 2: 'regoin' is not a field of a topology; did you mean 'region'?"),
    (
        2,
        "zone: us-west-2a",
        "line 2: zone: 'us-west-2a' is not a zone of us-east-1; write one of its zones, such as us",
    ),
    (2, "zone: 1", "line 2: zone is 1, but must be an availability zone of the region, or nothing for its first; the"),
    (1, "", "line 2: a topology lacks the field 'description'; add it, such as "),
    (4, "  release: emr-6.15.0", "line 4: preprocessing, release is 'emr-6.15.0', but must be an EMR 7 release"),
    (5, "  primary: {instance_type: m5.xlarg}", "line 5: preprocessing, primary, instance_type: 'm5.xlarg' is not an"),
    (5, "  primary: {instance_type: g5.xlarge}", "instance_type: 'g5.xlarge' does not run preprocessing"),
    (5, "  primary: {instance_type: m7g.xlarge}", "(EMR, with libraries for x86_64); take m4.xlarge or m5.xlarge"),
    (8, "    cuont: 2", "line 8: 'cuont' is not a field of preprocessing, core; did you mean 'count'?"),
    (8, "", "line 7: preprocessing, core lacks the field 'count'; add it, such as `count: 1`."),
    (8, "    count: two", "line 8: preprocessing, core, count is 'two', but must be a whole number of nodes"),
    (8, "    count: '2'", "count is '2', but must be a whole number of nodes, at least 1; the nearest is 2."),
    (8, "    count: 2.6", "count is 2.6, but must be a whole number of nodes, at least 1; the nearest is 3."),
    (8, "    count: 0", "count is 0, but must be a whole number of nodes, at least 1; the nearest is 1."),
    (8, "    count:", "line 8: preprocessing, core, count is empty, but must be a whole number"),
    (10, "  - instance_type: g5.xlrge", "line 10: training 1, instance_type: 'g5.xlrge' is not an instance type"),
    (10, "  - instance_type: m5.xlarge", "line 10: training 1, instance_type: 'm5.xlarge' has no GPU to train on; "),
    (11, "    count: 1\n    weather: 1", "line 12: 'weather' is not a field of training 1; there are name, instance_"),
    (12, "  - name: g5-xlarge", "training: two groups are named 'g5-xlarge'; give each a `name` of its own."),
    (12, "  - name: so slow", "line 12: training 2, name is 'so slow', but must be letters, digits and single dashes"),
    (15, "    gpus: 5", "line 12: training 2: gpus is 5, but g4dn.12xlarge has 4; use at most 4."),
    (
        16,
        "share: nfs",
        "line 16: share is 'nfs', but must be efs, or nothing for no shared folder; the nearest is efs",
    ),
    (16, "retain_data: perhaps", "line 16: retain_data is 'perhaps', but must be true or false; the nearest is false"),
    (16, "name: other", "line 16: 'name' is not a field: a topology is named by its file."),
    (16, "region: us-west-2", "line 16: 'region' stands here twice; keep one of them."),
    (16, "share: [efs", "this is not YAML (expected ',' or ']'"),
    (16, "\tshare: efs", "line 16: this is not YAML (found character '\\t' that cannot start any token); mend"),
]


@pytest.mark.parametrize(("line", "written", "sentence"), FAULTS)
def test_a_fault_is_one_sentence_with_file_line_field_and_what_to_do(
    tmp_path: Path, line: int, written: str, sentence: str
) -> None:
    lines = WHOLE.splitlines()
    lines[line - 1] = written
    with pytest.raises(TopologyError) as caught:
        topology.load("mine", write(tmp_path, "\n".join(lines)))
    text = str(caught.value)
    assert text.startswith("topologies/mine.yaml, line ")
    assert sentence in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "topologies/mine.yaml holds no fields"),
        ("- a\n- b\n", "topologies/mine.yaml holds no fields"),
        ("description: x\n", "line 1: there is neither preprocessing nor training; add at least one of the two."),
        (
            "description: x\npreprocessing: big\n",
            "line 2: preprocessing is 'big', but must be the EMR cluster's fields",
        ),
        ("description: x\ntraining: g5.xlarge\n", "line 2: training is 'g5.xlarge', but must be a list of node groups"),
        (
            "description: x\ntraining: [g5.xlarge]\n",
            "line 2: training 1 is 'g5.xlarge', but must be a list of node groups",
        ),
        ("description: x\ntraining: [{count: 1}]\n", "line 2: training 1 lacks the field 'instance_type'"),
    ],
)
def test_a_file_of_another_shape_is_named(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(TopologyError) as caught:
        topology.load("mine", write(tmp_path, text))
    assert sentence in str(caught.value)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, WHOLE)
    (folder / "mine.yaml").write_bytes(b"description: \xff\n")
    with pytest.raises(TopologyError, match=r"topologies/mine\.yaml is not UTF-8 text; save it as UTF-8\."):
        topology.load("mine", folder)


def test_an_unknown_topology_names_the_nearest() -> None:
    with pytest.raises(TopologyError, match=r"There is no topology 'demmo' in topologies/; did you mean demo\?"):
        topology.load("demmo", SHIPPED)


def test_a_topology_like_no_other_names_them_all(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="there are: mine"):
        topology.load("qqqq", write(tmp_path, WHOLE))


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="There is no topology"):
        topology.load("../mine", write(tmp_path, WHOLE))


@given(st.text())
def test_a_deployment_is_refused_or_its_stack_has_a_name_that_cloudformation_takes(name: str) -> None:
    try:
        stack = topology.stack_name(name)
    except TopologyError as error:
        nearest = re.search(r"such as '(.*)'\.$", str(error))
        assert nearest is not None
        assert topology.check_deployment(nearest[1])
    else:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,127}", stack)


@given(st.text())
def test_an_owner_always_fits_in_a_tag(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.+@-]{1,64}", topology.owner_tag(text))


def test_a_plain_owner_stays_as_it_is() -> None:
    assert topology.owner_tag("ada.lovelace@example.org") == "ada.lovelace@example.org"
