"""Resources for the stacks and clusters of several tests."""

from pathlib import Path
from typing import Any

import yaml

RESOURCES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("resources.yaml").read_text("utf-8"))
VPC, SUBNET, GROUP, TOPIC, ROLE = (RESOURCES[name] for name in ("vpc", "subnet", "group", "topic", "role"))
PROPERTIES = RESOURCES["properties"]
ONE_NODE = {"MasterInstanceGroup": {"InstanceCount": 1, "InstanceType": "m5.xlarge"}}
ROLES = {"ReleaseLabel": "emr-7.13.0", "JobFlowRole": "nodes", "ServiceRole": "service"}
"""Required properties of a cluster, in addition to its name and its instances."""


def cluster(**properties: Any) -> dict[str, Any]:
    return {
        "Type": "AWS::EMR::Cluster",
        "Properties": {"Name": "cluster", **ROLES, "Instances": ONE_NODE, **properties},
    }
