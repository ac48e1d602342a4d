"""Holds sizes and counts that no topology changes.

The constructs and `cost` both read them here, so that the computed price contains everything that is created.
"""

INTERFACE_ENDPOINTS = ("ssm", "ssmmessages")
"""The services that Systems Manager needs to open a shell on a node without internet access: one endpoint each, in one
zone. Only agents older than 2024 call a third one, `ec2messages`, which newer regions lack."""

EMR_ROOT_GIB = 30
"""Root volume of an EMR node, for the system, its applications and Shoal's environment."""

EMR_DATA_GIB = 64
"""HDFS and shuffle space of an EMR node."""

ROOT_DEVICE = "/dev/xvda"
"""The root device of Amazon Linux: the launch template of GPU nodes sets the size of this one."""
GPU_ROOT_GIB = 150
"""Root volume of a GPU node: the deep-learning image needs about half; the rest is for datasets and checkpoints. A
reader has the same image."""


def zones(region: str) -> int:
    """The number of zones in which the deployment's own network has subnets: as many as every account can use."""
    return 2 if region == "us-west-1" else 3
