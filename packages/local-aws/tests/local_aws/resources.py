"""Resources for the stacks and clusters of several tests."""

from typing import Any

VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}
SUBNET = {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24"}}
GROUP: dict[str, Any] = {
    "Type": "AWS::EC2::SecurityGroup",
    "Properties": {"GroupDescription": "tests", "VpcId": {"Ref": "Vpc"}},
}
TOPIC = {"Type": "AWS::SNS::Topic"}
ONE_NODE = {"MasterInstanceGroup": {"InstanceCount": 1, "InstanceType": "m5.xlarge"}}
ROLES = {"ReleaseLabel": "emr-7.13.0", "JobFlowRole": "nodes", "ServiceRole": "service"}
"""Required properties of a cluster, in addition to its name and its instances."""

ROLE = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []},
        "Policies": [
            {
                "PolicyName": "own",
                "PolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
                },
            }
        ],
    },
}
"""Role with all permissions."""


def cluster(**properties: Any) -> dict[str, Any]:
    """Return a cluster with one node and these additional properties."""
    return {
        "Type": "AWS::EMR::Cluster",
        "Properties": {"Name": "cluster", **ROLES, "Instances": ONE_NODE, **properties},
    }


PROPERTIES: dict[str, dict[str, Any]] = {
    "AWS::Budgets::Budget": {
        "Budget": {"BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": {"Amount": 20, "Unit": "USD"}}
    },
    "AWS::EC2::EIP": {"Domain": "vpc"},
    "AWS::EC2::FlowLog": {
        "ResourceId": {"Ref": "Vpc"},
        "ResourceType": "VPC",
        "TrafficType": "REJECT",
        "LogGroupName": "flows",
    },
    "AWS::EC2::NatGateway": {"SubnetId": {"Ref": "Subnet"}, "ConnectivityType": "private"},
    "AWS::EC2::PlacementGroup": {"Strategy": "cluster"},
    "AWS::EMR::SecurityConfiguration": {
        "SecurityConfiguration": {
            "InstanceMetadataServiceConfiguration": {"MinimumInstanceMetadataServiceVersion": 2},
            "EncryptionConfiguration": {"EnableAtRestEncryption": False},
        }
    },
}
"""Valid properties of resources, by type. They may refer to the resources `Vpc` and `Subnet` of the template."""
