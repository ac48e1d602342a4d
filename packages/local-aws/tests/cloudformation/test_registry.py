import pytest
from botocore.exceptions import ClientError
from tests.local_aws.resources import GROUP, KINDS, NETWORK, ONE_NODE, RESOURCES, VPC, cluster, of_kind

ADDED = [kind for kind, row in KINDS.items() if "list" in row]


def listed(client, kind):
    service, operation, items, identifier = KINDS[kind]["list"]
    found = getattr(client(service), operation)().get(items) or []
    gone = ("deleted", "TERMINATED")
    return {
        item[identifier] for item in found if (item.get("State") or item.get("Status", {}).get("State")) not in gone
    }


def test_an_unknown_type_is_refused_before_any_resource_is_created(stacks, client):
    before = client("s3").list_buckets()["Buckets"]
    with pytest.raises(ClientError, match=r"The embedded AWS does not have .*AWS::Quantum::Computer"):
        stacks.create("unknown", {"A": {"Type": "AWS::S3::Bucket"}, "B": {"Type": "AWS::Quantum::Computer"}})
    assert client("s3").list_buckets()["Buckets"] == before


@pytest.mark.parametrize("kind", ADDED)
def test_an_added_type_exists_until_its_stack_is_deleted(kind, stacks, client):
    before = listed(client, kind)
    name = kind.replace("::", "-")
    resources = {**NETWORK, "It": of_kind(kind)}
    assert stacks.create(name, resources) == "CREATE_COMPLETE", stacks.reasons(name)
    assert stacks.physical(name, "It") in listed(client, kind) - before
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert listed(client, kind) == before


TAGGED = ("FlowLog", "NatGateway", "EIP", "PlacementGroup")


def test_the_stacks_tags_reach_all_taggable_resources(stacks, client):
    resources = {
        **NETWORK,
        **{kind: of_kind(f"AWS::EC2::{kind}") for kind in TAGGED},
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Cluster": of_kind("AWS::EMR::Cluster"),
        "Template": RESOURCES["node_template"],
        "Nodes": RESOURCES["nodes"],
    }
    owner = {"Key": "shoal:owner", "Value": "me"}
    assert stacks.create("tags", resources, Tags=[owner]) == "CREATE_COMPLETE"
    ec2 = client("ec2")
    tagged = ec2.describe_tags(Filters=[{"Name": "key", "Values": ["shoal:owner"]}])["Tags"]
    ids = {tag["ResourceId"] for tag in tagged}
    assert {stacks.physical("tags", name) for name in ("Vpc", "Subnet", "Group", "FlowLog", "NatGateway")} <= ids
    assert ec2.describe_placement_groups()["PlacementGroups"][0]["GroupId"] in ids
    assert ec2.describe_addresses()["Addresses"][0]["AllocationId"] in ids
    assert owner in client("s3").get_bucket_tagging(Bucket=stacks.physical("tags", "Bucket"))["TagSet"]
    cluster = client("emr").describe_cluster(ClusterId=stacks.physical("tags", "Cluster"))["Cluster"]
    assert owner in cluster["Tags"]
    group = client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"][0]
    assert ("me", True) in [(tag["Value"], tag["PropagateAtLaunch"]) for tag in group["Tags"]]
    assert stacks.delete("tags") == "DELETE_COMPLETE"


def test_tags_of_flow_logs_and_addresses_change_in_place(stacks, client):
    def resources(**tags):
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        kinds = {"Log": "AWS::EC2::FlowLog", "Address": "AWS::EC2::EIP"}
        return {"Vpc": VPC, **{name: of_kind(kind, Tags=listed) for name, kind in kinds.items()}}

    ec2 = client("ec2")
    stacks.create("changing", resources(kept="1", changed="1", gone="1"))
    log, address = stacks.physical("changing", "Log"), stacks.physical("changing", "Address")
    allocation = ec2.describe_addresses(PublicIps=[address])["Addresses"][0]["AllocationId"]
    ec2.create_tags(Resources=[log], Tags=[{"Key": "by hand", "Value": "1"}])
    assert stacks.update("changing", resources(kept="1", changed="2", new="2")) == "UPDATE_COMPLETE"
    assert (stacks.physical("changing", "Log"), stacks.physical("changing", "Address")) == (log, address)

    def tags(identifier):
        found = ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [identifier]}])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found if not tag["Key"].startswith("aws:")}

    assert tags(log) == {"kept": "1", "changed": "2", "new": "2", "by hand": "1"}
    assert tags(allocation) == {"kept": "1", "changed": "2", "new": "2"}
    stacks.delete("changing")


@pytest.mark.parametrize(
    ("source", "kind", "stored"),
    [
        ({"CidrIp": "10.0.0.0/16"}, "IpRanges", {"CidrIp": "10.0.0.0/16"}),
        ({"SourceSecurityGroupId": {"Ref": "Group"}}, "UserIdGroupPairs", {}),
    ],
)
def test_a_rule_has_its_source_in_ec2s_format(source, kind, stored, stacks, client):
    rule = {"GroupId": {"Ref": "Group"}, "IpProtocol": "udp", "FromPort": "53", "ToPort": 53, "Description": "names"}
    ingress = {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {**rule, **source}}
    resources = {"Vpc": VPC, "Group": GROUP, "Rule": ingress}
    assert stacks.create("source", resources) == "CREATE_COMPLETE"
    group = stacks.physical("source", "Group")
    found = client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
    assert [(each["IpProtocol"], each["FromPort"], each["ToPort"]) for each in found] == [("udp", 53, 53)]
    expected = {"Description": "names", **(stored or {"GroupId": group})}
    assert [{name: each[name] for name in expected} for each in found[0][kind]] == [expected]
    kinds = ("IpRanges", "Ipv6Ranges", "PrefixListIds", "UserIdGroupPairs")
    assert [each for each in kinds if found[0].get(each)] == [kind]
    stacks.delete("source")


TASKS = [{"InstanceType": "m5.xlarge", "InstanceCount": 1, "Market": "SPOT"}]


def test_a_cluster_that_emr_would_refuse_fails_its_stack(stacks, messages):
    instances = {**ONE_NODE, "TaskInstanceGroups": TASKS}
    assert stacks.create("wrong", {"Cluster": cluster(Instances=instances)}) == "ROLLBACK_COMPLETE"
    messages.check(stacks.reason("wrong", "Cluster"))
    stacks.delete("wrong")


def test_changes_in_place_of_a_cluster_are_refused(stacks, messages):
    stacks.create("in-place", {"Cluster": cluster()})
    messages.hide(stacks.physical("in-place", "Cluster"), "CLUSTER")
    assert stacks.update("in-place", {"Cluster": cluster(StepConcurrencyLevel=3)}) == "UPDATE_ROLLBACK_COMPLETE"
    messages.check(stacks.reason("in-place", "Cluster"))
    stacks.delete("in-place")


def test_an_unknown_property_fails_its_stack(stacks):
    assert stacks.create("misspelt", {"Cluster": cluster(Nmae="typo")}) == "ROLLBACK_COMPLETE"
    assert "Nmae" in stacks.reasons("misspelt")
    stacks.delete("misspelt")


def test_a_bucket_that_holds_an_object_or_an_old_version_is_not_deleted(stacks, client):
    properties = {"VersioningConfiguration": {"Status": "Enabled"}}
    stacks.create("filled", {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": properties}})
    bucket, s3 = stacks.physical("filled", "Bucket"), client("s3")
    version = s3.put_object(Bucket=bucket, Key="key", Body=b"text")["VersionId"]
    with pytest.raises(ClientError, match="BucketNotEmpty"):
        s3.delete_bucket(Bucket=bucket)
    marker = s3.delete_object(Bucket=bucket, Key="key")["VersionId"]
    assert stacks.delete("filled") == "DELETE_FAILED"
    assert "is not empty" in stacks.reasons("filled")
    for identifier in (version, marker):
        s3.delete_object(Bucket=bucket, Key="key", VersionId=identifier)
    assert stacks.delete("filled") == "DELETE_COMPLETE"


def states(client, *clusters):
    listed = {entry["Id"]: entry["Status"]["State"] for entry in client("emr").list_clusters()["Clusters"]}
    return [listed[each] for each in clusters]


def test_other_changes_replace_a_cluster(stacks, client):
    stacks.create("replaced", {"Cluster": cluster()})
    first = stacks.physical("replaced", "Cluster")
    assert stacks.update("replaced", {"Cluster": cluster(ReleaseLabel="emr-7.12.0")}) == "UPDATE_COMPLETE"
    second = stacks.physical("replaced", "Cluster")
    assert states(client, first, second) == ["TERMINATED", "WAITING"]
    stacks.delete("replaced")


def test_an_instance_starts_and_ends_with_its_stack(stacks, client):
    properties = {
        "InstanceType": "m5.xlarge",
        "ImageId": "ami-0a1b2c3d4e5f60718",
        "UserData": "dHJ1ZQo=",
        "AvailabilityZone": "us-east-1a",
    }
    instance = {"Type": "AWS::EC2::Instance", "Properties": properties}
    assert stacks.create("machine", {"Machine": instance}) == "CREATE_COMPLETE", stacks.reasons("machine")
    asked = {"InstanceIds": [stacks.physical("machine", "Machine")]}
    for state in ("running", "terminated"):
        (found,) = client("ec2").describe_instances(**asked)["Reservations"][0]["Instances"]
        assert (found["State"]["Name"], found["InstanceType"]) == (state, "m5.xlarge")
        if state == "running":
            assert stacks.delete("machine") == "DELETE_COMPLETE"
