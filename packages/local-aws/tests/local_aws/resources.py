"""Resources for the stacks and clusters of several tests."""

from pathlib import Path

import yaml

HERE = Path(__file__).parent
KINDS = yaml.safe_load((HERE / "kinds.yaml").read_text("utf-8"))
RESOURCES = yaml.safe_load((HERE / "resources.yaml").read_text("utf-8"))
VPC, SUBNET, GROUP, TOPIC, ROLE = (RESOURCES[name] for name in ("vpc", "subnet", "group", "topic", "role"))
NETWORK = {"Vpc": VPC, "Subnet": SUBNET, "Group": GROUP}
ONE_NODE = {"MasterInstanceGroup": {"InstanceCount": 1, "InstanceType": "m5.xlarge"}}
ROLES = {"ReleaseLabel": "emr-7.13.0", "JobFlowRole": "nodes", "ServiceRole": "service"}
"""Required properties of a cluster, in addition to its name and its instances."""


def cluster(**properties):
    return {
        "Type": "AWS::EMR::Cluster",
        "Properties": {"Name": "cluster", **ROLES, "Instances": ONE_NODE, **properties},
    }


def of_kind(kind, **properties):
    """Return a resource of a type with valid properties, and with these."""
    return {"Type": kind, "Properties": {**KINDS[kind].get("properties", {}), **properties}}
