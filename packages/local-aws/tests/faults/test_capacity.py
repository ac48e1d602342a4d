import pytest
from shoal_local_aws.faults.capacity import market


@pytest.mark.parametrize(
    ("distribution", "on_demand", "expected"),
    [
        ({"OnDemandPercentageAboveBaseCapacity": "0"}, 0, "spot"),
        ({}, 3, "on-demand"),
        ({"OnDemandPercentageAboveBaseCapacity": 30}, 1, "on-demand"),
        ({"OnDemandPercentageAboveBaseCapacity": 30}, 2, "spot"),
        ({"OnDemandBaseCapacity": 2, "OnDemandPercentageAboveBaseCapacity": 50}, 2, "on-demand"),
        ({"OnDemandBaseCapacity": 2, "OnDemandPercentageAboveBaseCapacity": 50}, 3, "spot"),
    ],
    ids=str,
)
def test_the_base_and_the_share_decide_the_market_of_the_next_of_four_instances(distribution, on_demand, expected):
    policy = {"InstancesDistribution": distribution}
    assert market(policy, {}, desired=4, on_demand=on_demand) == expected
