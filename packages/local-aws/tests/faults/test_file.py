import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_local_aws.faults.file import FaultFile, Faults
from shoal_local_aws.faults.kinds import NoCapacity, Throttled


@pytest.fixture
def both(tmp_path):
    return FaultFile(tmp_path), Faults(tmp_path)


def test_a_fault_is_active_until_it_is_lifted(both):
    file, faults = both
    assert faults.find(NoCapacity) is None
    with file.during(NoCapacity(zone="us-east-1a")):
        assert faults.find(NoCapacity, zone="us-east-1a", instance_type="g5.xlarge", market="spot")
        assert faults.find(NoCapacity, zone="us-east-1b", instance_type="g5.xlarge", market="spot") is None
    assert not faults.find(NoCapacity)


@given(times=st.integers(0, 5), asked=st.integers(0, 8))
def test_a_fault_happens_at_most_the_given_number_of_times(times, asked, tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    FaultFile(folder).add(Throttled(service="ec2", times=times))
    faults = Faults(folder)
    struck = [faults.trigger(Throttled, service="ec2", operation="DescribeVpcs") is not None for _ in range(asked)]
    assert struck == [number < times for number in range(asked)]
    assert (faults.find(Throttled) is not None) == (asked < times)
