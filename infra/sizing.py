"""Sizes and counts that are the same for all topologies.

The constructs and `cost` both use these values, so that the computed price covers everything that is created.
"""

INTERFACE_ENDPOINTS = ("ssm", "ssmmessages")
"""Services that get an interface endpoint, in one zone, so that Systems Manager can open shells on nodes without
internet access. `ec2messages` is left out, because only agents older than 2024 call it, and newer regions lack it."""

EMR_ROOT_GIB = 30
"""Size of an EMR node's root volume, for the operating system, the applications and Shoal's environment."""

EMR_DATA_GIB = 64
"""Size of an EMR node's volume for HDFS and shuffles."""

ROOT_DEVICE = "/dev/xvda"
"""Name of the root device in Amazon Linux. The launch template of GPU nodes sets the size of this device."""
GPU_ROOT_GIB = 150
"""Size of the root volume of GPU nodes and readers. The deep-learning image needs about half of it. The rest is for
datasets and checkpoints."""


def zones(region: str) -> int:
    """Return the number of zones in which a new network has subnets. Every account can use at least this number in the
    region."""
    return 2 if region == "us-west-1" else 3
