import itertools

import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import FreePlan, NoCapacity, NotOffered
from tests.local_aws.scaling import Group

pytestmark = pytest.mark.usefixtures("raised_quotas")

_names = (f"group-{number}" for number in itertools.count())
TYPES = ("g6e.xlarge", "g6.xlarge", "g5.xlarge")
OPTIMIZED = {"OnDemandPercentageAboveBaseCapacity": 0, "SpotAllocationStrategy": "price-capacity-optimized"}


class Zoned(Group):
    """Group with subnets in the zones a, b and c."""

    def __init__(self, aws, client, subnets, **more):
        super().__init__(aws, client, next(_names), VPCZoneIdentifier=subnets["a"], **more)
        self._subnets = subnets

    def move(self, *zones):
        self.update(VPCZoneIdentifier=",".join(self._subnets[zone] for zone in zones))

    def serving_instances(self, count):
        return [self.instance(each) for each in self.serving(count)]

    def activities(self, status):
        found = self.asg.describe_scaling_activities(AutoScalingGroupName=self.name)["Activities"]
        return [activity for activity in found if activity["StatusCode"] == status]

    def types(self, count):
        return sorted(instance["InstanceType"] for instance in self.serving_instances(count))

    def zones(self):
        return sorted(member["AvailabilityZone"][-1] for member in self.described()["Instances"])


@pytest.fixture(scope="module")
def subnets(client):
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    blocks = {zone: {"CidrBlock": f"10.0.{number}.0/24"} for number, zone in enumerate("abc")}
    made = {zone: ec2.create_subnet(VpcId=vpc, AvailabilityZone=f"us-east-1{zone}", **blocks[zone]) for zone in blocks}
    return {zone: each["Subnet"]["SubnetId"] for zone, each in made.items()}


@pytest.fixture
def make(aws, client, subnets):
    made = []

    def group(**more):
        made.append(Zoned(aws, client, subnets, **more))
        return made[-1]

    yield group
    for each in made:
        each.asg.delete_auto_scaling_group(AutoScalingGroupName=each.name, ForceDelete=True)


@pytest.mark.parametrize(
    "fault",
    [
        NoCapacity(zone="us-east-1a", instance_type="g5.xlarge", market="on-demand"),
        NotOffered(instance_type="g5.xlarge", zone="us-east-1a"),
        FreePlan(),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_a_group_without_capacity_retries_after_an_update(fault, make, aws, messages):
    group = make()
    with aws.faults.during(fault):
        group.scale(2)
        (failed,) = group.activities("Failed")
        messages.check(failed["StatusMessage"])
        assert (group.described()["DesiredCapacity"], group.described()["Instances"]) == (2, [])
        group.update(MaxSize=2)
        assert len(group.activities("Failed")) == 2
    group.update(MaxSize=3)
    assert len(group.serving(2)) == 2


def test_instances_in_removed_subnets_stay_until_a_replacement_runs(make, aws):
    group = make()
    group.scale(1)
    before = group.serving(1)[0]
    with aws.faults.during(NoCapacity(zone="us-east-1c")):
        group.move("c")
        assert group.serving(1) == [before]
    group.update(MaxSize=3)
    group.serving(1)
    assert group.zones() == ["c"]


def test_spot_instances_are_replaced(make):
    group = make(spot=OPTIMIZED)
    group.scale(1)
    (instance,) = group.serving_instances(1)
    assert instance["InstanceLifecycle"] == "spot"
    described = group.described()
    assert "LaunchTemplate" not in described
    policy = described["MixedInstancesPolicy"]
    assert policy["LaunchTemplate"]["LaunchTemplateSpecification"]["LaunchTemplateName"] == group.name
    assert OPTIMIZED.items() <= policy["InstancesDistribution"].items()
    group.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    (another,) = group.serving(1)
    assert another != instance["InstanceId"]


def test_spot_falls_back_to_on_demand_only_by_policy(make, aws, messages):
    group = make(spot={"OnDemandPercentageAboveBaseCapacity": 0})
    with aws.faults.during(NoCapacity(market="spot")):
        group.scale(2)
        messages.check(group.activities("Failed")[0]["StatusMessage"])
        assert group.described()["Instances"] == []
        group.update(MixedInstancesPolicy={"InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 100}})
        assert ["InstanceLifecycle" in instance for instance in group.serving_instances(2)] == [False, False]
    policy = group.described()["MixedInstancesPolicy"]
    assert policy["LaunchTemplate"]["LaunchTemplateSpecification"]["LaunchTemplateName"] == group.name


def test_spot_instances_spread_over_types_with_capacity(make, aws):
    group = make(spot=OPTIMIZED, types=TYPES)
    group.scale(3)
    assert group.types(3) == sorted(TYPES)
    group.scale(0)
    with aws.faults.during(NoCapacity(instance_type="g6e.xlarge", market="spot")):
        group.scale(3)
        assert group.types(3) == ["g5.xlarge", "g6.xlarge", "g6.xlarge"]
    assert {each["InstanceType"] for each in group.described()["Instances"]} == {"g5.xlarge", "g6.xlarge"}


def test_a_cluster_placement_group_stays_in_one_zone(make, client, messages):
    client("ec2").create_placement_group(GroupName="tight", Strategy="cluster")
    placed = {"data": {"Placement": {"GroupName": "tight"}}}
    one, other = make(**placed), make(**placed)
    one.scale(1)
    one.serving(1)
    other.move("b")
    other.scale(1)
    messages.check(other.activities("Failed")[0]["StatusMessage"])
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.InUse"):
        client("ec2").delete_placement_group(GroupName="tight")
    one.scale(0)
    other.serving(1)


@pytest.mark.parametrize(
    ("operation", "values"),
    [("update", {"DesiredCapacity": 4}), ("update", {"MinSize": 4}), ("scale", {"count": 4})],
    ids=["desired", "least", "scaled"],
)
def test_sizes_that_contradict_each_other_are_refused(operation, values, make, messages):
    group = make()
    with messages.raises(ClientError):
        getattr(group, operation)(**values)
    assert (group.described()["MinSize"], group.described()["DesiredCapacity"]) == (0, 0)


def test_the_capacity_moves_into_new_bounds(make):
    group = make()
    group.update(MinSize=1)
    group.serving(1)
    group.update(MinSize=0, MaxSize=0)
    assert group.described()["DesiredCapacity"] == 0
    group.serving(0)
