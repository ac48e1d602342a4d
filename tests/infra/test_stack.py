"""The synthesised template: open ports, encryption, permissions, and the order of creation."""

import json
from pathlib import Path
from typing import Any

import pytest

from infra import topology
from tests.infra.invariants import Resources, as_list, needs, of_type, references, the
from tests.infra.templates import Templates
from tests.infra.variants import SHIPPED

DEMO = topology.load("demo", SHIPPED)


@pytest.fixture(scope="module")
def out(templates: Templates) -> Path:
    return templates.assembly(DEMO)


@pytest.fixture(scope="module")
def resources(templates: Templates) -> Resources:
    return templates.resources(DEMO)


def statements(resources: Resources, part: str) -> list[dict[str, Any]]:
    _, policy = the(resources, "AWS::IAM::Policy", part)
    return list(policy["PolicyDocument"]["Statement"])


# Network


def test_there_is_no_way_to_the_internet(resources: Resources) -> None:
    for kind in ("InternetGateway", "NatGateway", "EgressOnlyInternetGateway", "EIP", "Route"):
        assert not of_type(resources, f"AWS::EC2::{kind}")


def test_nodes_may_be_in_three_zones_and_are_found_there(resources: Resources) -> None:
    subnets = of_type(resources, "AWS::EC2::Subnet").values()
    assert [each["AvailabilityZone"] for each in subnets] == [
        {"Fn::Select": [number, {"Fn::GetAZs": ""}]} for number in range(3)
    ]
    assert all({"Key": topology.TAG_NODES, "Value": "true"} in each["Tags"] for each in subnets)


def test_s3_is_reached_by_an_endpoint_that_costs_nothing_and_nothing_else_is_needed(resources: Resources) -> None:
    (gateway,) = of_type(resources, "AWS::EC2::VPCEndpoint").values()
    assert gateway["VpcEndpointType"] == "Gateway"
    assert len(gateway["RouteTableIds"]) == 3
    for part in ("Preprocessing", "Training"):
        assert "ManagedPolicyArns" not in the(resources, "AWS::IAM::Role", f"{part}NodeRole")[1]
        assert "ssm" not in json.dumps([*statements(resources, f"{part}NodeRole"), gateway])


def test_the_share_is_in_every_zone(resources: Resources) -> None:
    mounted = {each["SubnetId"]["Ref"] for each in of_type(resources, "AWS::EFS::MountTarget").values()}
    assert mounted == set(of_type(resources, "AWS::EC2::Subnet"))


def test_gpu_nodes_reach_each_other_the_share_and_aws_alone(resources: Resources) -> None:
    nodes, group = the(resources, "AWS::EC2::SecurityGroup", "TrainingNodes")
    share, _ = the(resources, "AWS::EC2::SecurityGroup", "ShareAccess")
    _, inward = the(resources, "AWS::EC2::SecurityGroupIngress", "ALLTRAFFIC")
    assert inward["GroupId"] == inward["SourceSecurityGroupId"] == {"Fn::GetAtt": [nodes, "GroupId"]}
    outward = {
        (rule["IpProtocol"], rule.get("FromPort"), rule["DestinationSecurityGroupId"]["Fn::GetAtt"][0])
        for rule in of_type(resources, "AWS::EC2::SecurityGroupEgress").values()
        if nodes in references(rule["GroupId"])
    }
    assert outward == {("-1", None, nodes), ("tcp", 2049, share)}
    assert [rule["FromPort"] for rule in group["SecurityGroupEgress"]] == [443]


# Storage


def test_unfinished_uploads_end_everywhere_and_work_expires_alone_in_the_data_bucket(resources: Resources) -> None:
    rules = {
        name.removeprefix("Buckets").rstrip("0123456789ABCDEF"): each["LifecycleConfiguration"]["Rules"]
        for name, each in of_type(resources, "AWS::S3::Bucket").items()
    }
    unfinished = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2}, "Status": "Enabled"}
    work = {"ExpirationInDays": 2, "Prefix": topology.WORK_PREFIX, "Status": "Enabled"}
    assert rules["Raw"] == [unfinished]
    assert rules["Data"] == [unfinished, work]
    assert unfinished in rules["Log"]


# Permissions


LISTING = {
    "Training": {"s3:ListBucket"},
    "Preprocessing": {"s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"},
}


@pytest.mark.parametrize(
    ("part", "bucket", "reads", "writes"),
    [
        ("Training", "Data", ["/datasets/*", "/nodes/*", "/requests/*", "/runs/*"], ["/nodes/*", "/runs/*"]),
        ("Training", "Log", [], []),
        ("Training", "Raw", [], []),
        ("Preprocessing", "Data", ["/datasets/*", "/requests/*", "/work/*"], ["/datasets/*", "/work/*"]),
        ("Preprocessing", "Log", [], ["/emr/*"]),
        ("Preprocessing", "Raw", ["/*"], []),
    ],
)
def test_nodes_read_and_write_only_what_they_need_of_each_bucket(
    part: str, bucket: str, reads: list[str], writes: list[str], resources: Resources
) -> None:
    name, _ = the(resources, "AWS::S3::Bucket", bucket)
    found = [
        (set(as_list(each["Action"])), place["Fn::Join"][1][-1])
        for each in statements(resources, f"{part}NodeRole")
        for place in as_list(each["Resource"])
        if name in references(place) and "Fn::Join" in place
    ]
    assert sorted(prefix for actions, prefix in found if "s3:GetObject" in actions) == reads
    assert sorted(prefix for actions, prefix in found if "s3:PutObject" in actions) == writes
    assert {prefix for actions, prefix in found if "s3:DeleteObject" in actions} <= set(reads) & set(writes)
    of_the_bucket = [
        set(as_list(each["Action"]))
        for each in statements(resources, f"{part}NodeRole")
        if {"Fn::GetAtt": [name, "Arn"]} in as_list(each["Resource"])
    ]
    assert all(actions == LISTING[part] for actions in of_the_bucket)
    assert bool(of_the_bucket) == bool(reads or writes)


@pytest.mark.parametrize("part", ["Preprocessing", "Training"])
def test_nodes_read_their_payload_also_where_the_account_encrypts_it_with_a_key_of_its_own(
    part: str, resources: Resources
) -> None:
    found = statements(resources, f"{part}NodeRole")
    (decrypting,) = (each for each in found if "kms:Decrypt" in as_list(each["Action"]))
    assert as_list(decrypting["Action"]) == ["kms:Decrypt"]
    assert json.dumps(decrypting["Condition"]["StringEquals"]["kms:ViaService"]).startswith(
        '{"Fn::Join": ["", ["s3.us-east-1."'
    )
    read = {
        json.dumps(place["Fn::Join"][1][:-1])
        for each in found
        if as_list(each["Action"]) == ["s3:GetObject"]
        for place in as_list(each["Resource"])
        if "cdk-" in json.dumps(place)
    }
    bucket, objects = decrypting["Condition"]["StringLike"]["kms:EncryptionContext:aws:s3:arn"]
    assert {json.dumps(bucket["Fn::Join"][1]), json.dumps(objects["Fn::Join"][1][:-1])} == read


def test_emr_may_hand_over_one_role_to_one_service(resources: Resources) -> None:
    role, _ = the(resources, "AWS::IAM::Role", "PreprocessingNodeRole")
    (passing,) = statements(resources, "PreprocessingServiceRole")
    assert passing["Action"] == "iam:PassRole"
    assert passing["Resource"] == {"Fn::GetAtt": [role, "Arn"]}
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}


def test_the_cleaning_function_cannot_create_log_groups(resources: Resources) -> None:
    _, role = the(resources, "AWS::IAM::Role", "CleanupRole")
    assert "ManagedPolicyArns" not in role
    assert "logs:CreateLogGroup" not in json.dumps(statements(resources, "CleanupRole"))


# EMR


def test_the_cluster_installs_our_code_and_libraries(resources: Resources, out: Path) -> None:
    _, cluster = the(resources, "AWS::EMR::Cluster")
    (action,) = cluster["BootstrapActions"]
    script = action["ScriptBootstrapAction"]
    *addresses, region = script["Args"]
    assert region == "us-east-1"
    urls = [each["Fn::Sub"] for each in (script["Path"], *addresses)]
    assert all(url.startswith("s3://cdk-") for url in urls)
    install, code, wheels = (asset(out, url) for url in urls)
    assert install.read_text() == "bootstrap/preprocessing/emr/install.sh"
    assert files(code) == ["corpus/text.py", "jobs/encode.py", "jobs/words.txt"]
    assert wheels.read_text() == "build/wheels/emr-x86_64.zip"


def test_the_cluster_waits_for_steps_and_ends_itself(resources: Resources) -> None:
    _, cluster = the(resources, "AWS::EMR::Cluster")
    assert cluster["ReleaseLabel"] == "emr-7.13.0"
    assert cluster["StepConcurrencyLevel"] == 1
    assert cluster["AutoTerminationPolicy"] == {"IdleTimeout": 30 * 60}
    assert cluster["Instances"]["KeepJobFlowAliveWhenNoSteps"] is True
    assert cluster["Instances"]["TerminationProtected"] is False


def test_what_emrs_policy_works_on_carries_its_tag(resources: Resources) -> None:
    tagged = [
        each["Type"]
        for each in resources.values()
        if {"Key": "for-use-with-amazon-emr-managed-policies", "Value": "true"}
        in as_list(each.get("Properties", {}).get("Tags", []))
    ]
    assert sorted(tagged) == ["AWS::EC2::SecurityGroup"] * 3 + ["AWS::EC2::Subnet", "AWS::EMR::Cluster"]


# GPU nodes


def test_groups_start_at_zero_nodes_and_later_deployments_leave_their_size_alone(resources: Resources) -> None:
    groups = of_type(resources, "AWS::AutoScaling::AutoScalingGroup")
    assert len(groups) == 2
    for group in groups.values():
        assert (group["MinSize"], group["MaxSize"]) == ("0", "1")
        assert "DesiredCapacity" not in group


def test_nodes_and_disks_are_found_by_their_group(resources: Resources) -> None:
    found = set()
    for each in of_type(resources, "AWS::EC2::LaunchTemplate").values():
        data = each["LaunchTemplateData"]
        for spec in data["TagSpecifications"]:
            tags = {tag["Key"]: tag["Value"] for tag in spec["Tags"]}
            assert tags["shoal:deployment"] == "mine"
            found.add((data["InstanceType"], spec["ResourceType"], tags["shoal:group"]))
    assert found == {
        (kind, part, name)
        for kind, name in (("g5.xlarge", "fast"), ("g4dn.xlarge", "slow"))
        for part in ("instance", "volume")
    }


def test_groups_start_in_the_clusters_zone(resources: Resources) -> None:
    zones = [each["VPCZoneIdentifier"] for each in of_type(resources, "AWS::AutoScaling::AutoScalingGroup").values()]
    (cluster,) = of_type(resources, "AWS::EMR::Cluster").values()
    assert zones == [[cluster["Instances"]["Ec2SubnetId"]]] * 2


def test_groups_say_how_they_are_bought_and_when_they_start(resources: Resources) -> None:
    for group in of_type(resources, "AWS::AutoScaling::AutoScalingGroup").values():
        tags = {tag["Key"]: tag["Value"] for tag in group["Tags"] if tag["PropagateAtLaunch"]}
        assert (tags[topology.TAG_MARKET], tags[topology.TAG_START]) == ("on-demand", "train")
        assert "MixedInstancesPolicy" not in group


def test_a_node_is_told_what_it_needs_and_runs_the_boot_script(resources: Resources, out: Path) -> None:
    _, each = the(resources, "AWS::EC2::LaunchTemplate", "fast")
    parts = each["LaunchTemplateData"]["UserData"]["Fn::Base64"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else next(iter(part.values())) for part in parts)
    assert text.startswith("#!/bin/bash\nset -euo pipefail\n")
    exports = dict(line.removeprefix("export ").split("=", 1) for line in text.splitlines() if "export" in line)
    assert exports["DEPLOYMENT"] == "'mine'"
    assert exports["GROUP"] == "'fast'"
    assert exports["SHARE_KIND"] == "'efs'"
    assert exports["AWS_DEFAULT_REGION"] == "'us-east-1'"
    assert exports["DATA_BUCKET"] == f"'{the(resources, 'AWS::S3::Bucket', 'Data')[0]}'"
    assert exports["SHARE_ID"] == f"'{the(resources, 'AWS::EFS::FileSystem')[0]}'"
    code, wheels = (asset(out, exports[name].strip("'")) for name in ("CODE_URL", "WHEELS_URL"))
    assert files(code) == ["corpus/text.py", "trainer/classification/models/lstm.py", "trainer/loop.py"]
    assert wheels.read_text() == "build/wheels/gpu.zip"
    assert text.rstrip().endswith('bash "${NODE_ROOT:-}/tmp/boot.sh"')


def asset(out: Path, url: str) -> Path:
    """What is uploaded to the address: a file, or a folder that the CDK command makes a zip file of."""
    path = out / f"asset.{url.rpartition('/')[2]}"
    return path if path.exists() else path.with_suffix("")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# The whole


def test_the_outputs_are_those_that_the_commands_read(templates: Templates) -> None:
    assert set(templates(DEMO)["Outputs"]) == {
        topology.OUTPUT_RAW_BUCKET,
        topology.OUTPUT_DATA_BUCKET,
        topology.OUTPUT_LOG_BUCKET,
        topology.OUTPUT_CLUSTER_ID,
        topology.OUTPUT_SHARE_ID,
        topology.OUTPUT_GENERATION,
        topology.OUTPUT_GUARD,
    }


def test_whoever_writes_is_gone_before_the_buckets_are_emptied(resources: Resources) -> None:
    emptying = {name: each["Bucket"]["Ref"] for name, each in cleanups(resources).items() if "Bucket" in each}
    assert set(emptying.values()) == set(of_type(resources, "AWS::S3::Bucket"))
    for writer in (*groups(resources), the(resources, "AWS::EMR::Cluster")[0]):
        assert set(emptying) <= needs(resources, writer)


def test_the_cluster_is_gone_before_its_security_groups_are_untied_and_they_before_they_are_deleted(
    resources: Resources,
) -> None:
    cluster, properties = the(resources, "AWS::EMR::Cluster")
    untying, cleaned = the(resources, "Custom::Cleanup", "Groups")
    assert untying in needs(resources, cluster)
    instances = properties["Instances"]
    managed = [instances[key] for key in instances if key.endswith("SecurityGroup")]
    assert len(managed) == 3
    assert sorted(references(managed)) == sorted(references(cleaned["SecurityGroups"]))
    assert set(references(managed)) <= needs(resources, untying)


def test_what_the_guard_wrote_down_is_deleted_after_the_guard(resources: Resources) -> None:
    forgetting, properties = the(resources, "Custom::Cleanup", "Parameters")
    assert properties["Parameters"] == ["/shoal/mine/extension", "/shoal/mine/guard"]
    assert forgetting in needs(resources, the(resources, "AWS::Lambda::Function", "Guard")[0])


def test_nothing_that_costs_by_the_hour_changes_before_the_claim_was_checked(resources: Resources) -> None:
    claim, properties = the(resources, "Custom::Cleanup", "Claim")
    assert properties["Claim"] == {"Deployment": "mine", "Owner": "ada", "Topology": "demo"}
    costly = [*groups(resources), the(resources, "AWS::EMR::Cluster")[0], the(resources, "AWS::EFS::FileSystem")[0]]
    for each in costly:
        assert claim in needs(resources, each)


@pytest.mark.parametrize("part", ["Preprocessing", "TrainingNode"])
def test_roles_with_their_policies_and_the_way_to_s3_outlive_the_machines(resources: Resources, part: str) -> None:
    machines = groups(resources) if part == "TrainingNode" else [the(resources, "AWS::EMR::Cluster")[0]]
    lasting = {the(resources, "AWS::EC2::VPCEndpoint", "S3")[0]}
    for kind in ("Role", "Policy", "InstanceProfile"):
        lasting |= {name for name in of_type(resources, f"AWS::IAM::{kind}") if name.startswith(part)}
    assert len(lasting) >= 4
    for machine in machines:
        assert lasting <= needs(resources, machine)


def groups(resources: Resources) -> list[str]:
    return list(of_type(resources, "AWS::AutoScaling::AutoScalingGroup"))


def cleanups(resources: Resources) -> dict[str, Any]:
    return of_type(resources, "Custom::Cleanup")
