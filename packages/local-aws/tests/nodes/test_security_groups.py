import pytest
from tests.local_aws.resources import GROUP, ONE_NODE, SUBNET, VPC, cluster


def test_a_rule_with_two_sources_becomes_two_separate_rules(client):
    ec2 = client("ec2")
    group = ec2.create_security_group(GroupName="sources", Description="tests")["GroupId"]
    ranges = [{"CidrIp": "10.0.0.0/24"}, {"CidrIp": "10.0.1.0/24"}]
    ports = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[{**ports, "IpRanges": ranges}])
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[{**ports, "IpRanges": ranges[:1]}])
    left = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
    assert [permission["IpRanges"] for permission in left] == [ranges[1:]]


def in_groups(**instances):
    """Return the resources of a template: a cluster with its own security groups in a separate VPC."""
    managed = {
        **ONE_NODE,
        "EmrManagedMasterSecurityGroup": {"Ref": "Primary"},
        "EmrManagedSlaveSecurityGroup": {"Ref": "Core"},
        **instances,
    }
    return {"Vpc": VPC, "Primary": GROUP, "Core": GROUP, "Cluster": cluster(Instances=managed)}


def service_group(*, reported="Primary", managed=("Primary", "Core")):
    """Return a service access group for a cluster, with its ingress and egress rules."""

    def rule(port, **other):
        return {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, **other}

    outwards = [rule(8443, DestinationSecurityGroupId={"Ref": name}) for name in managed]
    properties = {
        **GROUP["Properties"],
        "SecurityGroupIngress": [rule(9443, SourceSecurityGroupId={"Ref": reported})],
        "SecurityGroupEgress": outwards,
    }
    return {**GROUP, "Properties": properties}


SERVICE = {"ServiceAccessSecurityGroup": {"Ref": "Service"}}
IN_SUBNET = {**in_groups(Ec2SubnetId={"Ref": "Subnet"}), "Subnet": SUBNET}


@pytest.mark.parametrize(
    "resources",
    [
        *(
            {**in_groups(**SERVICE), "Service": service_group(**rules)}
            for rules in ({"reported": "Core"}, {"managed": ("Core",)}, {"managed": ("Primary",)})
        ),
        IN_SUBNET,
    ],
    ids=["report", "primary", "core", "subnet"],
)
def test_a_cluster_without_required_groups_and_rules_does_not_start(resources, stacks, messages):
    assert stacks.create("unreachable", resources) == "ROLLBACK_COMPLETE"
    messages.check(stacks.reason("unreachable", "Cluster"))
    stacks.delete("unreachable")


def test_rules_added_by_emr_block_the_deletion_of_its_groups(stacks, client):
    resources = {**in_groups(**SERVICE), "Service": service_group()}
    assert stacks.create("network", resources) == "CREATE_COMPLETE", stacks.reasons("network")
    groups = [stacks.physical("network", name) for name in ("Primary", "Core", "Service")]
    assert stacks.delete("network") == "DELETE_FAILED"
    ec2 = client("ec2")
    for group in ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"]:
        ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=group["IpPermissions"])
        ec2.revoke_security_group_egress(GroupId=group["GroupId"], IpPermissions=group["IpPermissionsEgress"])
    assert stacks.delete("network") == "DELETE_COMPLETE", stacks.reasons("network")
