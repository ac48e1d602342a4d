"""A node group as described by Auto Scaling."""

from dataclasses import replace

import pytest

from shoal.aws import scaling_group
from shoal.aws.fleet import GpuGroup
from shoal.aws.scaling_group import ScalingGroup

GROUP = GpuGroup(name="fast", scaling_group="asg", size=2, desired=0, gpus=1, spot=False, stays=False)


class Services:
    """Stub of Auto Scaling and EC2 with one group, which also acts as the deployment and its session."""

    def __init__(self):
        self.session = self
        self.activities = []
        self.asked = []

    def client(self, _):
        return self

    def describe_launch_template_versions(self, **_):
        return {"LaunchTemplateVersions": [{"LaunchTemplateData": {"InstanceType": "g5.xlarge"}}]}

    def describe_scaling_activities(self, **_):
        return {"Activities": self.activities}

    def set_desired_capacity(self, **asked):
        self.asked.append(asked)

    update_auto_scaling_group = set_desired_capacity


@pytest.fixture
def services(monkeypatch):
    monkeypatch.setattr(scaling_group, "retrying", lambda call: call())
    return Services()


def activity(number, status):
    return {"ActivityId": str(number), "StatusCode": status, "StatusMessage": f"{status} {number}"}


def described(*states, **more):
    """Return AWS's description of a group with instances in these states."""
    return {"VPCZoneIdentifier": "subnet-1", "Instances": [{"LifecycleState": state} for state in states], **more}


def spot_group(services, *states, size=2, on_demand=0):
    """Return a group for spot nodes. Some of its nodes were requested on demand."""
    specification = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "1"}}
    policy = {"LaunchTemplate": specification, "InstancesDistribution": {"OnDemandBaseCapacity": on_demand}}
    return ScalingGroup(services, replace(GROUP, spot=True, size=size), described(*states, MixedInstancesPolicy=policy))


def test_only_refusals_since_the_request_count_and_only_while_nodes_are_missing(services):
    group = ScalingGroup(services, GROUP, described(LaunchTemplate={"LaunchTemplateId": "lt-1", "Version": "1"}))
    services.activities = [activity(1, "Failed")]
    group.request_nodes("subnet-1")
    services.activities += [activity(2, "Successful"), activity(3, "Cancelled"), activity(4, "Failed")]
    assert group.state().refusals == ("Cancelled 3", "Failed 4")
    assert services.asked == [{"AutoScalingGroupName": "asg", "DesiredCapacity": 2}]
    group.refresh(described("InService", "Terminating:Wait"))
    assert (group.existing, group.empty, group.state().existing, group.state().spot) == (1, False, 1, False)
    group.refresh(described("InService", "InService"))
    assert group.state().refusals == ()


def test_a_request_for_spot_nodes_in_the_same_zone_changes_only_the_size(services):
    spot_group(services).request_nodes("subnet-1")
    assert services.asked == [{"AutoScalingGroupName": "asg", "DesiredCapacity": 2}]


def test_missing_spot_nodes_are_requested_on_demand_in_addition_to_those_on_demand_by_now(services):
    group = spot_group(services, "InService", size=3, on_demand=1)
    group.request_on_demand()
    (asked,) = services.asked
    assert asked["MixedInstancesPolicy"]["InstancesDistribution"]["OnDemandBaseCapacity"] == 3
    assert (asked["DesiredCapacity"], group.state().spot) == (3, False)
