"""Stacks are deleted with an endpoint and a security group that GuardDuty's automated agent added to their network."""

import boto3
import pytest
from shoal_guard.handlers import cleanup
from shoal_local_aws.faults.kinds import GuardDutyAgent

pytestmark = pytest.mark.usefixtures("aws")
ADDED = [{"Name": "tag-key", "Values": [cleanup.GUARDDUTY]}]


def run_an_instance(subnet):
    """Start and terminate an instance. The agent then adds an endpoint and a security group, which this checks."""
    ec2 = boto3.client("ec2")
    (made,) = ec2.run_instances(ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=subnet)["Instances"]
    ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
    (endpoint,) = ec2.describe_vpc_endpoints(Filters=ADDED)["VpcEndpoints"]
    (group,) = ec2.describe_security_groups(Filters=ADDED)["SecurityGroups"]
    assert [each["GroupId"] for each in endpoint["Groups"]] == [group["GroupId"]]
    assert (endpoint["SubnetIds"], group["VpcId"]) == ([subnet], endpoint["VpcId"])
    return endpoint["VpcEndpointId"]


def is_gone():
    ec2 = boto3.client("ec2")
    found = ec2.describe_vpc_endpoints(Filters=ADDED)["VpcEndpoints"]
    return not [*found, *ec2.describe_security_groups(Filters=ADDED)["SecurityGroups"]]


def test_the_guard_alone_deletes_a_stack_with_a_network_that_guardduty_watches(deploy, aws):
    networked = deploy(kind="Networked", max_hours=1)
    with aws.faults.during(GuardDutyAgent(seconds=0.3)):
        run_an_instance(networked.named("NetworkVpcNodesSubnet1Subnet"))
        networked.after(0.6)
        networked.after(1)
        networked.becomes("DELETE_COMPLETE")
    assert is_gone()


def test_without_time_left_the_cleanup_of_a_network_says_what_is_left(aws, messages):
    ec2 = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    with aws.faults.during(GuardDutyAgent(seconds=0.3)):
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        messages.hide(run_an_instance(subnet), "ENDPOINT")
        with messages.raises(cleanup.UnfinishedError):
            cleanup.clean({"Network": vpc}, lambda: 0)
        cleanup.clean({"Network": vpc}, lambda: 900_000)
    assert is_gone()
