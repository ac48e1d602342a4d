"""What every deployment has beside what its topology chooses.

The constructs create it and `cost` prices it; both read it here, so that no size is paid for that the price omits.
"""

INTERFACE_ENDPOINTS = ("ssm", "ssmmessages", "ec2messages")
"""The services that Systems Manager needs in a network without a way out; one endpoint each, in one zone."""

EMR_ROOT_GIB = 30
"""Root volume of an EMR node: the system, its applications and Shoal's own environment."""

EMR_DATA_GIB = 64
"""HDFS and shuffle space of an EMR node."""

GPU_ROOT_GIB = 150
"""Root volume of a GPU node: the deep-learning image takes about half, datasets and checkpoints the rest."""


def zones(region: str) -> int:
    """In how many of the region's zones a network of the deployment's own has subnets: as many as all accounts see."""
    return 2 if region == "us-west-1" else 3
