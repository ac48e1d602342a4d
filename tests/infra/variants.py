"""Shipped topologies, and topologies with options that no shipped one has."""

from pathlib import Path

import yaml

from infra import policies, topology

SHIPPED = Path(__file__).resolve().parents[2] / "topologies"
ALL = yaml.safe_load(Path(__file__).with_name("with_all.yaml").read_text("utf-8"))
DEPLOYED = (
    *("one-node", "embeddings-4x1gpu", "embeddings-4x1gpu-2readers", "reference-2g3x16-2gpu", "scaling-a10g-t4"),
    *("scaling-a10g-l4-t4", "starter", "h100-8", "reference-1g3-1p2", "mixed-g5-g4dn", "mixed-spot", "emr-graviton"),
    *("reference-emr-8", "managed"),
)
"""Shipped topologies that tests/test_matrix.py deploys. Each other one has the resource types and properties of one of
these."""


def of(**fields):
    return topology.Topology.model_validate({"name": "mine", "description": "x", **fields})


INPUTS = {"name": "with-inputs", "inputs": ("s3://theirs", "s3://ours/2024/", "s3://ours/2023")}
TOPOLOGIES = [
    # All shipped topologies, which have no inputs, one with inputs, and one with every option.
    *(topology.load(name, SHIPPED) for name in topology.names_in(SHIPPED)),
    topology.load("demo", SHIPPED).model_copy(update=INPUTS),
    of(name="with-all", **ALL),
]
IN_OTHER_NETWORKS = [
    # Every option in an existing network, and with a shell, without NAT and with an existing data bucket.
    of(name=name, **{**ALL, **others})
    for name, others in (
        ("in-network", {"network": {"vpc": "vpc-0a1b2c3d4e5f60718", "subnet": "subnet-0a1b2c3d4e5f60718"}}),
        ("without-nat", {"network": {"shell": True}, "data": {"bucket": "my-reviews"}}),
    )
]


def bounded(spec):
    return spec.model_copy(update={"permissions_boundary": f"arn:aws:iam::111122223333:policy/{policies.BOUNDARY}"})
