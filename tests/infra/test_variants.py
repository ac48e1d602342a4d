"""Tests of stacks with refused topologies, missing libraries, and names of node groups."""

import shutil

import pytest

from infra import libraries, parts, topology
from tests.infra import invariants, reach
from tests.infra.conftest import fill
from tests.infra.pages import DEMO, demo
from tests.infra.templates import annotations
from tests.infra.variants import SHIPPED, of


def test_with_a_shell_nodes_write_into_no_foreign_bucket(templates):
    resources = templates.resources(demo(network={"shell": True}))
    assert reach.wrong(resources, "us-east-1") == []


def test_tags_of_a_topology_are_on_everything(templates):
    resources = templates.resources(DEMO.model_copy(update={"tags": {"project": "reviews"}}))
    assert invariants.untagged(resources, {"project": "reviews", topology.TAG_OWNER: "ada"}) == []


def test_retired_types_are_refused_on_aws_with_current_equivalents(synthesise, tmp_path, messages):
    stack = synthesise(topology.load("reference-3g3-1p2", SHIPPED), tmp_path, emulated=False)
    retired = sorted(each for each in annotations(stack) if "AWS retired" in each)
    assert len(retired) == 2
    for each in retired:
        messages.check(each)


@pytest.mark.parametrize(("name", "emulated"), [("reference-3g3-1p2", True), ("demo", False)])
def test_retired_types_deploy_to_the_emulator_and_current_ones_to_aws(name, emulated, synthesise, tmp_path):
    assert not annotations(synthesise(topology.load(name, SHIPPED), tmp_path, emulated=emulated))


@pytest.mark.parametrize(("inputs", "archive"), [((), "gpu"), (("s3://theirs",), "gpu-inputs")], ids=["own", "foreign"])
def test_missing_libraries_stop_a_deployment_but_not_the_synthesis(synthesise, tmp_path, inputs, archive, messages):
    bare = tmp_path / "bare"
    fill(bare)
    for path in (bare / "build" / "wheels").iterdir():
        if path.name != "gpu.zip" or not inputs:
            path.unlink()
    spec = DEMO.model_copy(update={"preprocessing": None, "inputs": inputs})
    stack = synthesise(spec, tmp_path / "out", root=bare)
    (error,) = annotations(stack)
    assert f"{archive}.zip" in error
    messages.check(error)


def test_nodes_get_the_whole_code_of_an_installed_shoal(synthesise, tmp_path, messages):
    site = fill(tmp_path / "site")
    spec = DEMO.model_copy(update={"preprocessing": None})
    (site / "packages" / "balance" / "shoal_balance").rename(site / "shoal_balance")
    stack = synthesise(spec, tmp_path / "out", root=site)
    stack.node.root.synth()
    (code,) = (path.parent for path in (tmp_path / "out").glob("asset.*/trainer"))
    assert (code / "shoal_balance" / "order.py").exists()
    assert not annotations(stack)
    shutil.rmtree(site / "shoal_balance")
    stack = synthesise(spec, tmp_path / "part", root=site)
    (error,) = annotations(stack)
    messages.check(error)


def test_only_libraries_of_the_topologys_nodes_count_as_missing(tmp_path):
    both = DEMO
    reads = both.model_copy(update={"preprocessing": None, "inputs": ("s3://theirs",)})
    assert [path.name for path in libraries.missing(both, tmp_path)] == ["emr-x86_64.zip", "gpu.zip"]
    assert [path.name for path in libraries.missing(reads, tmp_path)] == ["gpu-inputs.zip"]
    (tmp_path / "build" / "wheels").mkdir(parents=True)
    (tmp_path / "build" / "wheels" / "gpu-inputs.zip").touch()
    assert list(libraries.missing(reads, tmp_path)) == []
    assert list(libraries.missing(both.model_copy(update={"training": (), "preprocessing": None}), tmp_path)) == []
    assert libraries.of_gpu_nodes(topology.load("embeddings-4x1gpu-2readers", SHIPPED)).name == "gpu-inputs.zip"


def test_a_node_that_preprocesses_needs_the_libraries_for_texts(tmp_path):
    one = topology.load("one-node", SHIPPED)
    assert [path.name for path in libraries.missing(one, tmp_path)] == ["gpu-inputs.zip"]
    assert one.preprocesses_on_node
    assert not topology.load("fasttext", SHIPPED).preprocesses_on_node


def test_a_group_may_have_every_unreserved_name(synthesise, tmp_path):
    names = {"GpuPayload", "Nodes-2", "one", "two"}
    stack = synthesise(
        of(training=[{"name": name, "instance_type": "g5.xlarge", "count": 1} for name in names]), tmp_path
    )
    training = stack.node.find_child("Training")
    others = {each.node.id for each in training.node.children} - names - {f"{name}-Template" for name in names}
    assert others == set(parts.RESERVED_NAMES)


@pytest.mark.parametrize("name", [*parts.RESERVED_NAMES, "one-Template"])
def test_a_reserved_name_is_refused(name):
    groups = [{"name": each, "instance_type": "g5.xlarge", "count": 1} for each in ("one", name)]
    with pytest.raises(ValueError, match=f"'{name}' is reserved by the stack"):
        of(training=groups)


def test_start_deploy_causes_no_warning(synthesise, tmp_path):
    stack = synthesise(of(training=[{"instance_type": "g5.xlarge", "count": 1, "start": "deploy"}]), tmp_path)
    stack.node.root.synth()
    assert annotations(stack, "warning") == set()
