"""Sizes and counts that are the same for all topologies.

The constructs and `cost` both read them here, so that the computed price covers everything that is created.
"""

INTERFACE_ENDPOINTS = ("ssm", "ssmmessages")
"""Services with an interface endpoint, in one zone, for shells through Systems Manager on nodes without internet.
Only agents older than 2024 also call `ec2messages`, which newer regions lack."""

EMR_ROOT_GIB = 30
"""Size of an EMR node's root volume, for the system, applications and Shoal's environment."""

EMR_DATA_GIB = 64
"""Size of an EMR node's volume for HDFS and shuffles."""

ROOT_DEVICE = "/dev/xvda"
"""Root device of Amazon Linux. The launch template of GPU nodes sets its size."""
GPU_ROOT_GIB = 150
"""Size of the root volume of GPU nodes and readers. The deep-learning image needs about half; the rest is for datasets
and checkpoints."""


def zones(region: str) -> int:
    """Return the number of zones with subnets in a new network: as many as every account can use."""
    return 2 if region == "us-west-1" else 3
