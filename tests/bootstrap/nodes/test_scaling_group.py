"""A node group as described by Auto Scaling."""

from dataclasses import replace

from bootstrap.nodes import scaling_group
from bootstrap.nodes.fleet import GpuGroup
from bootstrap.nodes.scaling_group import ScalingGroup

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

    def update_auto_scaling_group(self, **asked):
        self.asked.append(asked)

    def set_desired_capacity(self, **asked):
        self.asked.append(asked)


def activity(number, status):
    return {"ActivityId": str(number), "StatusCode": status, "StatusMessage": f"{status} {number}"}


def test_only_refusals_since_the_request_count_and_only_while_nodes_are_missing(monkeypatch):
    monkeypatch.setattr(scaling_group, "retrying", lambda call: call())
    services = Services()
    template = {"LaunchTemplateId": "lt-1", "Version": "1"}
    found = {"VPCZoneIdentifier": "subnet-1", "LaunchTemplate": template, "Instances": []}
    group = ScalingGroup(services, GROUP, found)
    services.activities = [activity(1, "Failed")]
    group.request_nodes("subnet-1")
    services.activities += [activity(2, "Successful"), activity(3, "Cancelled"), activity(4, "Failed")]
    assert group.state().refusals == ("Cancelled 3", "Failed 4")
    assert services.asked == [{"AutoScalingGroupName": "asg", "DesiredCapacity": 2}]
    instances = [{"LifecycleState": "InService"}, {"LifecycleState": "Terminating:Wait"}]
    group.refresh({**found, "Instances": instances})
    assert (group.existing, group.empty, group.state().existing, group.state().spot) == (1, False, 1, False)
    group.refresh({**found, "Instances": instances[:1] * 2})
    assert group.state().refusals == ()


def test_a_request_for_spot_nodes_in_the_same_zone_changes_only_the_size(monkeypatch):
    monkeypatch.setattr(scaling_group, "retrying", lambda call: call())
    services = Services()
    specification = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "1"}}
    policy = {"LaunchTemplate": specification, "InstancesDistribution": {"OnDemandBaseCapacity": 0}}
    found = {"VPCZoneIdentifier": "subnet-1", "MixedInstancesPolicy": policy, "Instances": []}
    ScalingGroup(services, replace(GROUP, spot=True), found).request_nodes("subnet-1")
    assert services.asked == [{"AutoScalingGroupName": "asg", "DesiredCapacity": 2}]


def test_missing_spot_nodes_are_requested_on_demand_besides_those_that_are_on_demand_by_now(monkeypatch):
    monkeypatch.setattr(scaling_group, "retrying", lambda call: call())
    services = Services()
    specification = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "1"}}
    policy = {"LaunchTemplate": specification, "InstancesDistribution": {"OnDemandBaseCapacity": 1}}
    instances = [{"LifecycleState": "InService"}]
    described = {"VPCZoneIdentifier": "subnet-1", "MixedInstancesPolicy": policy, "Instances": instances}
    group = ScalingGroup(services, replace(GROUP, spot=True, size=3), described)
    group.request_on_demand()
    (asked,) = services.asked
    assert asked["MixedInstancesPolicy"]["InstancesDistribution"]["OnDemandBaseCapacity"] == 3
    assert (asked["DesiredCapacity"], group.state().spot) == (3, False)
