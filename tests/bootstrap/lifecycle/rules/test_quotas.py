"""Tests of the vCPUs that a topology needs of each quota."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.lifecycle.rules.quotas import needs, quota_of
from tests.bootstrap.lifecycle.preflight import GPU, PRIMARY, topology_of


def vcpus_of(**fields: Any) -> dict[str, int]:
    return {quota.code: vcpus for quota, vcpus in needs(topology_of(**fields)).items()}


def test_nodes_of_several_types_count_as_the_largest() -> None:
    several = {"instance_types": ["g4dn.xlarge", "g5.4xlarge", "g6.2xlarge"], "count": 2, "market": "spot"}
    assert vcpus_of(training=[several]) == {"L-3819A6DF": 32}


def test_readers_count_against_the_quota_of_standard_instances() -> None:
    readers = {"role": "read", "instance_type": "m5.2xlarge", "count": 3, "market": "spot"}
    assert vcpus_of(training=[GPU, readers], share="nfs") == {"L-DB2E81BA": 8, "L-34B43A08": 24}


@pytest.mark.parametrize(
    ("name", "spot", "code"),
    [
        ("m5.xlarge", False, "L-1216C47A"),
        ("r7g.xlarge", True, "L-34B43A08"),
        ("im4gn.xlarge", False, "L-1216C47A"),
        ("g4dn.xlarge", False, "L-DB2E81BA"),
        ("gr6.4xlarge", False, "L-DB2E81BA"),
        ("vt1.3xlarge", True, "L-3819A6DF"),
        ("p3.2xlarge", False, "L-417A185B"),
        ("p5.48xlarge", False, "L-417A185B"),
        ("p4d.24xlarge", True, "L-7212CCBC"),
        ("p5en.48xlarge", True, "L-C4BD4855"),
        ("p6-b200.48xlarge", False, "L-417A185B"),
        ("inf2.xlarge", False, None),
        ("trn1.2xlarge", False, None),
        ("x1.16xlarge", False, None),
    ],
)
def test_a_type_counts_against_its_familys_quota(name: str, spot: bool, code: str | None) -> None:
    quota = quota_of(name, spot=spot)
    assert (quota.code if quota else None) == code


@given(st.integers(1, 50), st.integers(1, 50), st.booleans())
def test_the_needed_vcpus_are_the_sum_over_all_nodes(workers: int, nodes: int, spot: bool) -> None:
    market = "spot" if spot else "on-demand"
    vcpus = vcpus_of(
        preprocessing={"primary": PRIMARY, "core": {"instance_type": "m5.2xlarge", "count": workers}},
        training=[{"instance_type": "g5.xlarge", "count": nodes, "market": market}],
    )
    assert vcpus == {"L-1216C47A": 4 + 8 * workers, "L-3819A6DF" if spot else "L-DB2E81BA": 4 * nodes}
