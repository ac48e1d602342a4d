"""Tests of stacks with missing libraries, names of node groups, other regions and existing networks."""

import shutil

import pytest

from infra import libraries, parts, topology
from tests.infra import reach
from tests.infra.conftest import fill
from tests.infra.handled import Handled
from tests.infra.invariants import of_type
from tests.infra.pages import DEMO, demo
from tests.infra.templates import annotations
from tests.infra.variants import SHIPPED, of


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


NONE = {"training": (), "preprocessing": None}


@pytest.mark.parametrize(
    ("spec", "there", "missing"),
    [
        (DEMO, "", ["emr-x86_64.zip", "gpu.zip"]),
        (DEMO.model_copy(update={"preprocessing": None, "inputs": ("s3://theirs",)}), "", ["gpu-inputs.zip"]),
        (topology.load("embeddings-4x1gpu-2readers", SHIPPED), "gpu-inputs.zip", []),
        (topology.load("one-node", SHIPPED), "gpu.zip", ["gpu-inputs.zip"]),
        (DEMO.model_copy(update=NONE), "", []),
    ],
    ids=["cluster", "inputs", "readers", "one node", "no nodes"],
)
def test_only_libraries_of_the_topologys_nodes_count_as_missing(spec, there, missing, tmp_path):
    (tmp_path / "build" / "wheels").mkdir(parents=True)
    (tmp_path / "build" / "wheels" / (there or "other.zip")).touch()
    assert [path.name for path in libraries.missing(spec, tmp_path)] == missing


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


@pytest.mark.parametrize(
    "spec",
    [
        of(training=[{"instance_type": "g5.xlarge", "count": 1, "start": "deploy"}]),
        demo(network={"vpc": "vpc-0123456789abcdef0", "subnet": "subnet-0123456789abcdef0"}, zone="us-east-1b"),
    ],
    ids=["start with the deployment", "existing network"],
)
def test_a_usual_choice_causes_no_warning(spec, synthesise, tmp_path):
    stack = synthesise(spec, tmp_path)
    stack.node.root.synth()
    assert annotations(stack, "warning") == set()


def test_a_region_with_two_zones_gets_two_subnets(templates):
    assert len(of_type(templates.resources(demo(region="us-west-1")), "AWS::EC2::Subnet")) == 2


def test_in_every_region_the_gateway_allows_exactly_what_nodes_need(templates):
    spec = demo(region="eu-west-1")
    assert reach.wrong(Handled(spec, templates(spec)), spec.region) == []
