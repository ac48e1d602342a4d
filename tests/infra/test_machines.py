"""The machines that a topology chooses: how many, of which kind, how they are bought and when they start."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match

from infra import catalog, parts, topology
from tests.infra.invariants import of_type, references, the
from tests.infra.templates import ResourcesOf, Synthesise, Templates
from tests.infra.variants import of

ONE = {"instance_type": "m5.xlarge"}
TWO = {"instance_type": "m5.xlarge", "count": 2}


def groups_of(cluster: dict[str, Any]) -> dict[str, list[tuple[str, int, str]]]:
    """By role: type, count and market."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    for role, key in (
        ("primary", "MasterInstanceGroup"),
        ("core", "CoreInstanceGroup"),
        ("task", "TaskInstanceGroups"),
    ):
        given = cluster["Instances"].get(key, [])
        groups = given if isinstance(given, list) else [given]
        found[role] = [(each["InstanceType"], each["InstanceCount"], each["Market"]) for each in groups]
    return found


# EMR


def test_without_core_nodes_the_primary_one_is_the_cluster(resources_of: ResourcesOf) -> None:
    _, cluster = the(resources_of(preprocessing={"primary": ONE}), "AWS::EMR::Cluster")
    assert groups_of(cluster) == {"primary": [("m5.xlarge", 1, "ON_DEMAND")], "core": [], "task": []}


def test_each_group_of_the_cluster_is_bought_on_its_own_market(resources_of: ResourcesOf) -> None:
    chosen = {"primary": {**ONE, "market": "spot"}, "core": TWO, "task": {**TWO, "market": "spot"}}
    _, cluster = the(resources_of(preprocessing=chosen), "AWS::EMR::Cluster")
    assert groups_of(cluster) == {
        "primary": [("m5.xlarge", 1, "SPOT")],
        "core": [("m5.xlarge", 2, "ON_DEMAND")],
        "task": [("m5.xlarge", 2, "SPOT")],
    }
    assert "BidPrice" not in str(cluster)


@pytest.mark.parametrize(("task", "most_core"), [(None, 9), (TWO, 2)])
def test_a_scaled_cluster_keeps_its_core_nodes_and_moves_its_task_nodes_where_it_has_some(
    task: object, most_core: int, resources_of: ResourcesOf
) -> None:
    chosen = {"primary": ONE, "core": TWO, "task": task, "scaling": {"maximum": 9}}
    _, cluster = the(resources_of(preprocessing=chosen), "AWS::EMR::Cluster")
    assert cluster["ManagedScalingPolicy"]["ComputeLimits"] == {
        "UnitType": "Instances",
        "MinimumCapacityUnits": 2,
        "MaximumCapacityUnits": 9,
        "MaximumCoreCapacityUnits": most_core,
    }


def test_a_cluster_is_scaled_only_where_it_is_asked_for(resources_of: ResourcesOf) -> None:
    _, cluster = the(resources_of(preprocessing={"primary": ONE, "core": TWO}), "AWS::EMR::Cluster")
    assert "ManagedScalingPolicy" not in cluster


def test_another_number_of_core_nodes_changes_that_number_of_the_same_cluster_alone(
    resources_of: ResourcesOf,
) -> None:
    few, many = (
        resources_of(preprocessing={"primary": ONE, "core": {**TWO, "count": count}}, guard={"max_hours": 3})
        for count in (2, 5)
    )
    changed = {name for name in few | many if few.get(name) != many.get(name)}
    cluster, properties = the(few, "AWS::EMR::Cluster")
    assert cluster in changed
    assert {few[name]["Type"] for name in changed} <= {"AWS::EMR::Cluster"}
    properties["Instances"]["CoreInstanceGroup"]["InstanceCount"] = 5
    assert properties == many[cluster]["Properties"]


@pytest.mark.parametrize(("minutes", "seconds"), [(5, 300), (10_080, 604_800)])
def test_a_cluster_ends_itself_when_idle_for_as_long_as_the_guard_allows(
    minutes: int, seconds: int, resources_of: ResourcesOf
) -> None:
    resources = resources_of(preprocessing={"primary": ONE}, guard={"idle_minutes": minutes})
    assert the(resources, "AWS::EMR::Cluster")[1]["AutoTerminationPolicy"] == {"IdleTimeout": seconds}


def test_the_first_spot_request_of_an_account_may_make_the_role_that_spot_needs(
    resources_of: ResourcesOf,
) -> None:
    for market, allowed in (("on-demand", False), ("spot", True)):
        resources = resources_of(preprocessing={"primary": {**ONE, "market": market}})
        _, policy = the(resources, "AWS::IAM::Policy", "PreprocessingServiceRole")
        actions = [statement["Action"] for statement in policy["PolicyDocument"]["Statement"]]
        assert ("iam:CreateServiceLinkedRole" in actions) is allowed


@pytest.mark.parametrize(("instance_type", "architecture"), [("m5.xlarge", "x86_64"), ("m7g.xlarge", "arm64")])
def test_a_clusters_libraries_are_those_of_its_processors(
    instance_type: str, architecture: str, templates: Templates
) -> None:
    spec = of(preprocessing={"primary": {"instance_type": instance_type}})
    _, cluster = the(templates.resources(spec), "AWS::EMR::Cluster")
    wheels = cluster["BootstrapActions"][0]["ScriptBootstrapAction"]["Args"][1]["Fn::Sub"]
    asset = templates.assembly(spec) / f"asset.{wheels.rpartition('/')[2]}"
    assert asset.read_text() == f"build/wheels/emr-{architecture}.zip"


# GPU nodes


def test_a_group_may_have_every_name_but_those_of_other_parts(synthesise: Synthesise, tmp_path: Path) -> None:
    names = {"GpuPayload", "Nodes-2", "one", "two"}
    training = synthesise(
        of(training=[{"name": name, "instance_type": "g5.xlarge", "count": 1} for name in names]), tmp_path
    ).training
    assert training is not None
    others = {each.node.id for each in training.node.children} - names - {f"{name}-Template" for name in names}
    assert others == set(parts.RESERVED_NAMES)


@pytest.mark.parametrize("name", [*parts.RESERVED_NAMES, "one-Template"])
def test_the_name_of_another_part_is_refused(name: str) -> None:
    groups = [{"name": each, "instance_type": "g5.xlarge", "count": 1} for each in ("one", name)]
    with pytest.raises(ValueError, match=f"'{name}' is the name of another part of the stack; choose another"):
        of(training=groups)


def test_spot_nodes_are_spot_alone_until_the_launcher_says_otherwise(resources_of: ResourcesOf) -> None:
    resources = resources_of(training=[{"instance_type": "g5.xlarge", "count": 1, "market": "spot"}])
    _, group = the(resources, "AWS::AutoScaling::AutoScalingGroup")
    policy = group["MixedInstancesPolicy"]
    assert policy["InstancesDistribution"] == {
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
    }
    assert "LaunchTemplate" not in group
    assert the(resources, "AWS::EC2::LaunchTemplate")[0] in set(references(policy))
    assert {"Key": topology.TAG_MARKET, "Value": "spot", "PropagateAtLaunch": True} in group["Tags"]


def test_nodes_that_start_with_the_deployment_are_all_wanted_and_may_all_be_lowered(
    resources_of: ResourcesOf,
) -> None:
    resources = resources_of(training=[{"instance_type": "g5.xlarge", "count": 3, "start": "deploy"}])
    _, group = the(resources, "AWS::AutoScaling::AutoScalingGroup")
    assert (group["MinSize"], group["DesiredCapacity"], group["MaxSize"]) == ("0", "3", "3")
    assert {"Key": topology.TAG_START, "Value": "deploy", "PropagateAtLaunch": True} in group["Tags"]


def test_a_deployment_that_takes_no_warnings_may_start_nodes(synthesise: Synthesise, tmp_path: Path) -> None:
    stack = synthesise(of(training=[{"instance_type": "g5.xlarge", "count": 1, "start": "deploy"}]), tmp_path)
    assert not Annotations.from_stack(stack).find_warning("*", Match.any_value())


def test_a_node_alone_needs_no_place_beside_others(resources_of: ResourcesOf) -> None:
    resources = resources_of(training=[{"instance_type": "g5.xlarge", "count": 1}])
    assert not of_type(resources, "AWS::EC2::PlacementGroup")
    assert "Placement" not in the(resources, "AWS::EC2::LaunchTemplate")[1]["LaunchTemplateData"]


@pytest.mark.parametrize("markets", [("on-demand", "on-demand"), ("on-demand", "spot")])
def test_nodes_of_one_type_start_close_together(markets: tuple[str, str], resources_of: ResourcesOf) -> None:
    one, two = ({"name": market[:2] + str(n), "instance_type": "g5.xlarge", "count": 1, "market": market}
                for n, market in enumerate(markets))  # fmt: skip
    resources = resources_of(training=[one, two])
    place, group = the(resources, "AWS::EC2::PlacementGroup")
    assert group["Strategy"] == "cluster"
    for each in of_type(resources, "AWS::EC2::LaunchTemplate").values():
        assert set(references(each["LaunchTemplateData"]["Placement"])) == {place}


def test_efa_has_an_interface_on_each_network_card_in_the_nodes_own_group(
    resources_of: ResourcesOf,
) -> None:
    resources = resources_of(training=[{"instance_type": "p4d.24xlarge", "count": 2, "efa": True}])
    data = the(resources, "AWS::EC2::LaunchTemplate")[1]["LaunchTemplateData"]
    assert "SecurityGroupIds" not in data
    assert set(references(data["Placement"])) == {the(resources, "AWS::EC2::PlacementGroup")[0]}
    assert [
        (each["NetworkCardIndex"], each["DeviceIndex"], each["InterfaceType"]) for each in data["NetworkInterfaces"]
    ] == [
        (0, 0, "efa"),
        (1, 1, "efa-only"),
        (2, 1, "efa-only"),
        (3, 1, "efa-only"),
    ]
    (group,) = {name for each in data["NetworkInterfaces"] for name in references(each["Groups"])}
    for kind in ("Ingress", "Egress"):
        rules = of_type(resources, f"AWS::EC2::SecurityGroup{kind}").values()
        assert any(rule["IpProtocol"] == "-1" and set(references(rule)) == {group} for rule in rules), kind


def test_nodes_of_unlike_types_start_wherever_the_zone_has_them(resources_of: ResourcesOf) -> None:
    resources = resources_of(
        training=[{"instance_type": "g5.xlarge", "count": 2}, {"instance_type": "g4dn.xlarge", "count": 2}]
    )
    assert not of_type(resources, "AWS::EC2::PlacementGroup")
    for each in of_type(resources, "AWS::EC2::LaunchTemplate").values():
        assert "Placement" not in each["LaunchTemplateData"]


def test_another_number_of_nodes_changes_one_group_alone(resources_of: ResourcesOf) -> None:
    few, many = (
        resources_of(
            training=[{"instance_type": "g5.xlarge", "count": count}, {"instance_type": "g4dn.xlarge", "count": 1}]
        )
        for count in (2, 3)
    )
    changed = {name for name in few | many if few.get(name) != many.get(name)}
    assert changed == {the(few, "AWS::AutoScaling::AutoScalingGroup", "g5xlarge")[0]}


def test_each_group_starts_from_an_image_for_its_type(resources_of: ResourcesOf) -> None:
    resources = resources_of(training=[{"instance_type": "g5.xlarge", "count": 1}])
    image = the(resources, "AWS::EC2::LaunchTemplate")[1]["LaunchTemplateData"]["ImageId"]
    assert image == "{{resolve:ssm:" + catalog.image_of("g5.xlarge").parameter + "}}"


def test_a_nodes_disk_goes_with_it(resources_of: ResourcesOf) -> None:
    resources = resources_of(training=[{"instance_type": "g5.xlarge", "count": 1}])
    (disk,) = the(resources, "AWS::EC2::LaunchTemplate")[1]["LaunchTemplateData"]["BlockDeviceMappings"]
    assert disk["Ebs"]["DeleteOnTermination"] is True
    assert disk["Ebs"]["Encrypted"] is True


@pytest.mark.parametrize(("share", "said", "output"), [("nfs", "nfs", "nfs"), (None, "none", None)])
def test_without_efs_nodes_are_told_what_they_share(
    share: str | None, said: str, output: str | None, templates: Templates
) -> None:
    spec = of(training=[{"instance_type": "g5.xlarge", "count": 2}], share=share)
    found = templates(spec)
    resources = found["Resources"]
    assert not [each for each in resources.values() if each["Type"].startswith("AWS::EFS::")]
    script = str(the(resources, "AWS::EC2::LaunchTemplate")[1]["LaunchTemplateData"]["UserData"])
    assert f"export SHARE_KIND='{said}'" in script
    assert found["Outputs"].get(topology.OUTPUT_SHARE_ID) == (output and {"Value": output})


def test_readers_boot_as_gpu_nodes_do_without_a_gpu_and_without_a_place_near_them(
    resources_of: ResourcesOf,
) -> None:
    trainers = {"name": "train", "instance_type": "g5.xlarge", "count": 2}
    readers = {"name": "read", "role": "read", "instance_type": "m5.xlarge", "count": 3, "market": "spot"}
    resources = resources_of(training=[trainers, readers], share="nfs")
    assert the(resources, "AWS::EC2::PlacementGroup")
    found = {}
    for template in of_type(resources, "AWS::EC2::LaunchTemplate").values():
        data = template["LaunchTemplateData"]
        found[data["InstanceType"]] = data
    gpu, cpu = found["g5.xlarge"], found["m5.xlarge"]
    assert ("Placement" in gpu, "Placement" in cpu) == (True, False)
    assert gpu["ImageId"] == cpu["ImageId"]
    assert gpu["BlockDeviceMappings"] == cpu["BlockDeviceMappings"]
    assert "export GPUS='0'" in json.dumps(cpu["UserData"])
    tags = {
        group["MaxSize"]: {tag["Key"]: tag["Value"] for tag in group["Tags"]}
        for group in of_type(resources, "AWS::AutoScaling::AutoScalingGroup").values()
    }
    assert {size: (each[topology.TAG_ROLE], each[topology.TAG_GPUS]) for size, each in tags.items()} == {
        "2": ("train", "1"),
        "3": ("read", "0"),
    }


def test_one_node_that_trains_needs_no_place_however_many_read_for_it(resources_of: ResourcesOf) -> None:
    trainer = {"name": "train", "instance_type": "g5.xlarge", "count": 1}
    readers = {"name": "read", "role": "read", "instance_type": "m5.xlarge", "count": 2}
    resources = resources_of(training=[trainer, readers], share="nfs")
    assert of_type(resources, "AWS::EC2::PlacementGroup") == {}
