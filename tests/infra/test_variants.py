"""Stacks of topologies that leave parts out, keep data, or are refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match

from infra import libraries, parts, topology
from infra.stack import ShoalStack
from tests.infra import invariants, reach
from tests.infra.invariants import as_list, of_type, the
from tests.infra.templates import Synthesise, Templates
from tests.infra.variants import SHIPPED, bounded

DEMO = topology.load("demo", SHIPPED)


def errors(stack: ShoalStack) -> set[str]:
    return {each.entry.data for each in Annotations.from_stack(stack).find_error("*", Match.any_value())}


@pytest.mark.parametrize(
    ("left_out", "absent"),
    [
        ({"preprocessing": None}, {"AWS::EMR::Cluster"}),
        ({"training": ()}, {"AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate"}),
        ({"share": None}, {"AWS::EFS::FileSystem", "AWS::EFS::MountTarget"}),
    ],
)
def test_what_a_topology_leaves_out_is_not_created(
    templates: Templates, left_out: dict[str, object], absent: set[str]
) -> None:
    found = templates.resources(DEMO.model_copy(update=left_out)).values()
    assert not {each["Type"] for each in found} & absent


@pytest.mark.parametrize("left_out", [{"preprocessing": None}, {"training": ()}])
def test_with_a_shell_systems_manager_reaches_whatever_nodes_there_are_by_endpoints_in_one_zone(
    templates: Templates, left_out: dict[str, object]
) -> None:
    spec = DEMO.model_copy(update={**left_out, "network": parts.NetworkSpec(shell=True)})
    resources = templates.resources(spec)
    assert invariants.broken(resources, {topology.TAG_DEPLOYMENT: "mine"}) == []
    assert reach.wrong(resources, "us-east-1") == []
    endpoints = of_type(resources, "AWS::EC2::VPCEndpoint").values()
    (zone, *_), again = (each["SubnetIds"] for each in endpoints if each["VpcEndpointType"] == "Interface")
    assert again == [zone]
    _, role = the(resources, "AWS::IAM::Role", "NodeRole")
    assert "AmazonSSMManagedInstanceCore" in json.dumps(role["ManagedPolicyArns"])
    machines = {"PreprocessingPrimary", "PreprocessingCore"} if spec.preprocessing else {"TrainingNodes"}
    admitted = {
        each["SourceSecurityGroupId"]["Fn::GetAtt"][0].rstrip("0123456789ABCDEF")
        for name, each in of_type(resources, "AWS::EC2::SecurityGroupIngress").items()
        if name.startswith("NetworkEndpointAccess")
    }
    assert admitted == machines


def test_each_generation_is_another_cluster_and_nothing_else(templates: Templates) -> None:
    resources = [templates.resources(DEMO, generation=number) for number in (1, 2, 3)]
    clusters = [{name for name, each in one.items() if each["Type"] == "AWS::EMR::Cluster"} for one in resources]
    assert len(set.union(*clusters)) == 3
    others = [
        {name: one[name] for name in set(one) - cluster} for one, cluster in zip(resources, clusters, strict=True)
    ]
    assert others[0] == others[1] == others[2]


def test_kept_data_are_never_emptied_also_when_that_is_decided_later(templates: Templates) -> None:
    before, after = (templates.resources(with_data(keep=keep)) for keep in (False, True))
    cleaned = of_type(after, "Custom::Cleanup")
    assert set(of_type(before, "Custom::Cleanup")) == set(cleaned)  # a deleted cleanup would empty its bucket
    emptied = {each["Bucket"]["Ref"] for each in cleaned.values() if "Bucket" in each}
    assert len(emptied) == 2
    kept = {name for name, each in after.items() if each.get("DeletionPolicy") == "RetainExceptOnCreate"}
    assert len([name for name in kept if after[name]["Type"] == "AWS::S3::Bucket"]) == 1
    assert not emptied & kept


def test_a_limit_of_what_a_run_may_cost_changes_an_output_alone(templates: Templates) -> None:
    before, after = templates(DEMO), templates(DEMO.model_copy(update={"max_dollars": 20.0}))
    assert after == {**before, "Outputs": {**before["Outputs"], topology.OUTPUT_MAX_DOLLARS: {"Value": "20.0"}}}


def test_a_bucket_that_was_given_is_used_and_nothing_of_it_is_changed(templates: Templates) -> None:
    found = templates(with_data(bucket="my-reviews"))
    resources = found["Resources"]
    assert found["Outputs"][topology.OUTPUT_DATA_BUCKET] == {"Value": "my-reviews"}
    assert len(of_type(resources, "AWS::S3::Bucket")) == 2
    speaking = {name for name, each in resources.items() if "my-reviews" in json.dumps(each)}
    assert {resources[name]["Type"] for name in speaking} == {
        "AWS::EC2::LaunchTemplate",
        "AWS::EC2::VPCEndpoint",
        "AWS::IAM::Policy",
        "AWS::Lambda::Function",
    }
    assert not speaking & {name for name in resources if name.startswith("Cleanup")}


def test_in_a_bucket_that_was_given_nodes_reach_only_what_is_theirs(templates: Templates) -> None:
    resources = templates.resources(with_data(bucket="my-reviews"))
    reached = {
        (part, place["Fn::Join"][1][-1].partition(":s3:::my-reviews")[2])
        for part in ("Preprocessing", "Training")
        for statement in the(resources, "AWS::IAM::Policy", f"{part}NodeRole")[1]["PolicyDocument"]["Statement"]
        for place in as_list(statement["Resource"])
        if "my-reviews" in json.dumps(place)
    }
    assert {place for part, place in reached if part == "Preprocessing"} == {
        "",
        "/datasets/*",
        "/requests/*",
        "/work/*",
    }
    assert {place for part, place in reached if part == "Training"} == {
        "",
        "/datasets/*",
        "/requests/*",
        "/runs/*",
        "/nodes/*",
    }


def test_tags_of_a_topology_are_on_everything(templates: Templates) -> None:
    resources = templates.resources(DEMO.model_copy(update={"tags": {"project": "reviews"}}))
    assert invariants.untagged(resources, {"project": "reviews", topology.TAG_OWNER: "ada"}) == []


def with_data(**fields: object) -> topology.Topology:
    return DEMO.model_copy(update={"data": parts.DataSpec.model_validate(fields)})


def test_retired_types_are_refused_on_aws_with_those_of_today(synthesise: Synthesise, tmp_path: Path) -> None:
    stack = synthesise(topology.load("reference-3g3-1p2", SHIPPED), tmp_path, emulated=False)
    said = "AWS retired {} and starts none; in reference-3g3-1p2.yaml take {}, today's equivalent."
    retired = [each for each in errors(stack) if "AWS retired" in each]
    assert sorted(each.partition(": ")[2] for each in retired) == [
        said.format("g3.4xlarge (2025-10-31)", "g5.xlarge"),
        said.format("p2.xlarge (2024)", "g4dn.xlarge"),
    ]


def test_retired_types_play_on_the_emulator(synthesise: Synthesise, tmp_path: Path) -> None:
    assert not errors(synthesise(topology.load("reference-3g3-1p2", SHIPPED), tmp_path))


def test_types_of_today_deploy_to_aws(synthesise: Synthesise, tmp_path: Path) -> None:
    assert not errors(synthesise(DEMO, tmp_path, emulated=False))


@pytest.mark.parametrize(
    ("inputs", "archive", "command"), [((), "gpu", "make setup"), (("s3://theirs",), "gpu-inputs", "make inputs")]
)
def test_libraries_that_were_not_fetched_stop_a_deployment_but_not_the_synthesis(
    synthesise: Synthesise, tmp_path: Path, inputs: tuple[str, ...], archive: str, command: str
) -> None:
    bare = tmp_path / "bare"
    for name in ("bootstrap/nodes/gpu/boot.sh", *({"build/wheels/gpu.zip"} if inputs else ())):
        (bare / name).parent.mkdir(parents=True)
        (bare / name).write_text(name)
    spec = DEMO.model_copy(update={"preprocessing": None, "inputs": inputs})
    stack = synthesise(spec, tmp_path / "out", repository=bare)
    assert errors(stack) == {
        f"build/wheels/{archive}.zip is missing; run `{command}` in a checkout of Shoal, and deploy from there."
    }


def test_a_topology_misses_only_what_its_own_nodes_install(tmp_path: Path) -> None:
    both = DEMO
    reads = both.model_copy(update={"preprocessing": None, "inputs": ("s3://theirs",)})
    assert [path.name for path in libraries.missing(both, tmp_path)] == ["emr-x86_64.zip", "gpu.zip"]
    assert [path.name for path in libraries.missing(reads, tmp_path)] == ["gpu-inputs.zip"]
    (tmp_path / "build" / "wheels").mkdir(parents=True)
    (tmp_path / "build" / "wheels" / "gpu-inputs.zip").touch()
    assert list(libraries.missing(reads, tmp_path)) == []
    assert list(libraries.missing(both.model_copy(update={"training": (), "preprocessing": None}), tmp_path)) == []
    assert libraries.of_gpu_nodes(topology.load("embeddings-4x1gpu-2readers", SHIPPED)).name == "gpu-inputs.zip"


def test_a_node_that_preprocesses_has_the_jobs_and_reads_the_raw_bucket(templates: Templates, tmp_path: Path) -> None:
    def raw_keys(name: str) -> list[Any]:
        resources = templates.resources(bounded(topology.load(name, SHIPPED)), deployment=name)
        _, policy = the(resources, "AWS::IAM::Policy", "TrainingNodeRole")
        return [each for each in policy["PolicyDocument"]["Statement"] if "BucketsRaw" in str(each["Resource"])]

    allowed = raw_keys("one-node")
    assert {action for each in allowed for action in as_list(each["Action"])} == {
        "s3:GetObject",
        "s3:ListBucket",
    }
    assert raw_keys("fasttext") == []
    one = topology.load("one-node", SHIPPED)
    assert [path.name for path in libraries.missing(one, tmp_path)] == ["gpu-inputs.zip"]
    assert one.preprocesses_on_node
    assert not topology.load("fasttext", SHIPPED).preprocesses_on_node
