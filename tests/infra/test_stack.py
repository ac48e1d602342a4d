"""What the synthesised template holds: who is let in, what is encrypted, who may do what, what goes before what."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from infra import topology
from infra.stack import ShoalStack

SHIPPED = Path(__file__).resolve().parents[2] / "topologies"

Resources = dict[str, dict[str, Any]]

# CloudFormation gives these no tags.
UNTAGGED = {
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EFS::MountTarget",
    "AWS::EMR::SecurityConfiguration",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::Policy",
    "AWS::S3::BucketPolicy",
    "Custom::Cleanup",
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def template(synthesise: Callable[..., ShoalStack], out: Path) -> Template:
    return Template.from_stack(synthesise(topology.load("demo", SHIPPED), out))


@pytest.fixture(scope="module")
def resources(template: Template) -> Resources:
    return dict(template.to_json()["Resources"])


def of_type(resources: Resources, kind: str) -> dict[str, Any]:
    return {name: each.get("Properties", {}) for name, each in resources.items() if each["Type"] == kind}


def the(resources: Resources, kind: str, part: str = "") -> tuple[str, dict[str, Any]]:
    """The one resource of a type whose logical id has this part."""
    (found,) = ((name, each) for name, each in of_type(resources, kind).items() if part in name)
    return found


def references(value: Any) -> Iterator[str]:
    """The logical ids that a part of the template names."""
    if isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        if "Fn::GetAtt" in value:
            yield value["Fn::GetAtt"][0]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def needs(resources: Resources, name: str) -> set[str]:
    """All that is created before a resource, and deleted after it."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = resources[waiting.pop()]
        direct = {*references(each.get("Properties", {})), *each.get("DependsOn", [])} & set(resources)
        waiting += direct - found
        found |= direct
    return found


def statements(resources: Resources, part: str) -> list[dict[str, Any]]:
    _, policy = the(resources, "AWS::IAM::Policy", part)
    return list(policy["PolicyDocument"]["Statement"])


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# Network


def test_no_rule_lets_an_address_in(resources: Resources) -> None:
    for group in of_type(resources, "AWS::EC2::SecurityGroup").values():
        assert "SecurityGroupIngress" not in group
    rules = of_type(resources, "AWS::EC2::SecurityGroupIngress")
    assert rules
    for rule in rules.values():
        assert "SourceSecurityGroupId" in rule
        assert not {"CidrIp", "CidrIpv6", "SourcePrefixListId"} & set(rule)


def test_there_is_no_way_to_the_internet(template: Template) -> None:
    for kind in ("InternetGateway", "NatGateway", "EgressOnlyInternetGateway", "EIP", "Route"):
        template.resource_count_is(f"AWS::EC2::{kind}", 0)


def test_aws_is_reached_by_endpoints(resources: Resources) -> None:
    endpoints = of_type(resources, "AWS::EC2::VPCEndpoint").values()
    kinds = sorted((each["VpcEndpointType"], str(each["ServiceName"])[-15:]) for each in endpoints)
    assert [kind for kind, _ in kinds] == ["Gateway", "Interface", "Interface", "Interface"]


def test_gpu_nodes_reach_each_other_the_share_and_aws_alone(resources: Resources) -> None:
    nodes, group = the(resources, "AWS::EC2::SecurityGroup", "TrainingNodes")
    share, _ = the(resources, "AWS::EC2::SecurityGroup", "ShareAccess")
    _, inward = the(resources, "AWS::EC2::SecurityGroupIngress", "ALLTRAFFIC")
    assert inward["GroupId"] == inward["SourceSecurityGroupId"] == {"Fn::GetAtt": [nodes, "GroupId"]}
    outward = {
        (rule["IpProtocol"], rule.get("FromPort"), rule["DestinationSecurityGroupId"]["Fn::GetAtt"][0])
        for rule in of_type(resources, "AWS::EC2::SecurityGroupEgress").values()
    }
    assert outward == {("-1", None, nodes), ("tcp", 2049, share)}
    assert [rule["FromPort"] for rule in group["SecurityGroupEgress"]] == [443]


# Storage


def test_three_buckets_are_private_and_encrypted(template: Template) -> None:
    template.resource_count_is("AWS::S3::Bucket", 3)
    template.all_resources_properties(
        "AWS::S3::Bucket",
        {
            "BucketEncryption": Match.any_value(),
            "PublicAccessBlockConfiguration": {
                "BlockPublicAcls": True,
                "BlockPublicPolicy": True,
                "IgnorePublicAcls": True,
                "RestrictPublicBuckets": True,
            },
        },
    )


def test_buckets_and_share_refuse_connections_without_tls(resources: Resources) -> None:
    policies = [each["PolicyDocument"] for each in of_type(resources, "AWS::S3::BucketPolicy").values()]
    policies.append(the(resources, "AWS::EFS::FileSystem")[1]["FileSystemPolicy"])
    assert len(policies) == 4
    for policy in policies:
        (only,) = policy["Statement"]
        assert only["Effect"] == "Deny"
        assert only["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


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


def test_the_share_and_the_nodes_disks_are_encrypted(template: Template) -> None:
    template.all_resources_properties("AWS::EFS::FileSystem", {"Encrypted": True})
    template.all_resources_properties(
        "AWS::EC2::LaunchTemplate",
        {"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"Encrypted": True, "VolumeType": "gp3"}}]}},
    )


# Permissions


def test_no_policy_allows_any_action_or_a_change_of_anything(resources: Resources) -> None:
    for policy in of_type(resources, "AWS::IAM::Policy").values():
        for statement in policy["PolicyDocument"]["Statement"]:
            actions = as_list(statement["Action"])
            assert not [action for action in actions if "*" in action]
            if "*" in as_list(statement["Resource"]):
                assert actions == ["ec2:DescribeSecurityGroups"]


def test_gpu_nodes_write_only_runs_and_their_own_states(resources: Resources) -> None:
    data, _ = the(resources, "AWS::S3::Bucket", "Data")
    writing = [each for each in statements(resources, "TrainingNodeRole") if "s3:PutObject" in each["Action"]]
    places = [place for each in writing for place in as_list(each["Resource"])]
    assert sorted(place["Fn::Join"][1][-1] for place in places) == ["/nodes/*", "/runs/*"]
    assert set(references(places)) == {data}


def test_emr_nodes_only_read_the_raw_bucket(resources: Resources) -> None:
    raw, _ = the(resources, "AWS::S3::Bucket", "Raw")
    actions = {
        action
        for each in statements(resources, "PreprocessingNodeRole")
        if raw in references(each["Resource"])
        for action in as_list(each["Action"])
    }
    assert actions == {"s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"}


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
    assert install.read_text() == "bootstrap/emr/install.sh"
    assert files(code) == ["corpus/text.py", "jobs/encode.py", "jobs/words.txt"]
    assert wheels.read_text() == "build/wheels/emr.zip"


def test_the_cluster_waits_for_steps_and_ends_itself(resources: Resources) -> None:
    _, cluster = the(resources, "AWS::EMR::Cluster")
    assert cluster["ReleaseLabel"] == "emr-7.13.0"
    assert cluster["StepConcurrencyLevel"] == 1
    assert cluster["AutoTerminationPolicy"] == {"IdleTimeout": 3600}
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


def test_nodes_ask_for_metadata_with_a_token(template: Template) -> None:
    template.all_resources_properties(
        "AWS::EC2::LaunchTemplate",
        {"LaunchTemplateData": {"MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}}},
    )


def test_a_node_is_told_what_it_needs_and_runs_the_boot_script(resources: Resources, out: Path) -> None:
    _, each = the(resources, "AWS::EC2::LaunchTemplate", "fast")
    parts = each["LaunchTemplateData"]["UserData"]["Fn::Base64"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else next(iter(part.values())) for part in parts)
    assert text.startswith("#!/bin/bash\nset -euo pipefail\n")
    exports = dict(line.removeprefix("export ").split("=", 1) for line in text.splitlines() if "export" in line)
    assert exports["DEPLOYMENT"] == "'mine'"
    assert exports["GROUP"] == "'fast'"
    assert exports["AWS_DEFAULT_REGION"] == "'us-east-1'"
    assert exports["DATA_BUCKET"] == f"'{the(resources, 'AWS::S3::Bucket', 'Data')[0]}'"
    assert exports["SHARE_ID"] == f"'{the(resources, 'AWS::EFS::FileSystem')[0]}'"
    code, wheels = (asset(out, exports[name].strip("'")) for name in ("CODE_URL", "WHEELS_URL"))
    assert files(code) == ["corpus/text.py", "trainer/loop.py", "trainer/models/lstm.py"]
    assert wheels.read_text() == "build/wheels/gpu.zip"
    assert text.rstrip().endswith('bash "${NODE_ROOT:-}/tmp/boot.sh"')


def asset(out: Path, url: str) -> Path:
    """What is uploaded to the address: a file, or a folder that the CDK command makes a zip file of."""
    path = out / f"asset.{url.rpartition('/')[2]}"
    return path if path.exists() else path.with_suffix("")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# The whole


def test_everything_that_takes_tags_has_ours(resources: Resources) -> None:
    for name, each in resources.items():
        if each["Type"] in UNTAGGED:
            continue
        properties = each["Properties"]
        tags = properties.get("Tags") or properties.get("FileSystemTags")
        if tags is None:
            tags = properties["TagSpecifications"][0]["Tags"]
        found = {tag["Key"]: tag["Value"] for tag in tags}
        assert {found.get(f"shoal:{key}") for key in ("deployment", "topology", "owner")} == {"mine", "demo", "ada"}, (
            name
        )


def test_the_outputs_are_those_that_the_commands_read(template: Template) -> None:
    assert set(template.to_json()["Outputs"]) == {
        topology.OUTPUT_RAW_BUCKET,
        topology.OUTPUT_DATA_BUCKET,
        topology.OUTPUT_LOG_BUCKET,
        topology.OUTPUT_CLUSTER_ID,
        topology.OUTPUT_SHARE_ID,
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
