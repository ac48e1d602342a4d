"""Tests of the vCPUs that a topology needs of each quota."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_local_aws.faults import quotas

from infra import catalog
from shoal.deployments.rules.quotas import needs, quota_of
from tests.shoal.deployments.preflight import GPU, PRIMARY, topology_of


def vcpus_of(**fields: Any) -> dict[str, int]:
    return {quota.code: vcpus for quota, vcpus in needs(topology_of(**fields)).items()}


def test_nodes_of_several_types_count_as_the_largest() -> None:
    several = {"instance_types": ["g4dn.xlarge", "g5.4xlarge", "g6.2xlarge"], "count": 2, "market": "spot"}
    assert vcpus_of(training=[several]) == {"L-3819A6DF": 32}


def test_readers_count_against_the_quota_of_standard_instances() -> None:
    readers = {"role": "read", "instance_type": "m5.2xlarge", "count": 3, "market": "spot"}
    assert vcpus_of(training=[GPU, readers], share="nfs") == {"L-DB2E81BA": 8, "L-34B43A08": 24}


ON_DEMAND = {
    "L-1216C47A": "m5.xlarge im4gn.xlarge",
    "L-DB2E81BA": "g4dn.xlarge gr6.4xlarge",
    "L-417A185B": "p3.2xlarge p5.48xlarge p6-b200.48xlarge",
    None: "inf2.xlarge trn1.2xlarge x1.16xlarge",
}
SPOT = {
    "L-34B43A08": "r7g.xlarge",
    "L-3819A6DF": "vt1.3xlarge",
    "L-7212CCBC": "p4d.24xlarge",
    "L-C4BD4855": "p5en.48xlarge",
}


@pytest.mark.parametrize(("codes", "spot"), [(ON_DEMAND, False), (SPOT, True)], ids=["on demand", "spot"])
def test_a_type_counts_against_its_familys_quota(codes, spot) -> None:
    found = {name: quota_of(name, spot=spot) for names in codes.values() for name in names.split()}
    assert {name: quota.code if quota else None for name, quota in found.items()} == {
        name: code for code, names in codes.items() for name in names.split()
    }


@pytest.mark.parametrize("spot", [False, True], ids=["on-demand", "spot"])
def test_the_emulator_counts_the_same_vcpus_against_the_same_quotas(spot) -> None:
    for kind in catalog.catalog().types.values():
        quota = quota_of(kind.name, spot=spot)
        assert quotas.quota_of(kind.name, "spot" if spot else "on-demand") == (quota.code if quota else None)
        assert quotas.vcpus(kind.name) == kind.vcpu


@given(st.integers(1, 50), st.integers(1, 50), st.booleans())
def test_the_needed_vcpus_are_the_sum_over_all_nodes(workers, nodes, spot) -> None:
    market = "spot" if spot else "on-demand"
    vcpus = vcpus_of(
        preprocessing={"primary": PRIMARY, "core": {"instance_type": "m5.2xlarge", "count": workers}},
        training=[{"instance_type": "g5.xlarge", "count": nodes, "market": market}],
    )
    assert vcpus == {"L-1216C47A": 4 + 8 * workers, "L-3819A6DF" if spot else "L-DB2E81BA": 4 * nodes}
