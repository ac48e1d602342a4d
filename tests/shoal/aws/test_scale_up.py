"""Node groups scaled up in the emulator, with missing capacity, failed boots, and nodes that stay."""

import io
import json
import re
from dataclasses import replace
from typing import ClassVar

import boto3
import pytest
from shoal_local_aws.faults.kinds import Denied, NoCapacity, NotOffered, SilentBoot
from tests.local_aws.accounts import session_with

from common import names
from common.errors import ShoalError
from common.progress import ProgressReporter, reporting
from infra import policies
from shoal.aws import scale_up
from shoal.aws.account import Account
from shoal.aws.deployment import Deployment
from shoal.cli.verbs.status import _described as described
from shoal.deployments import status
from tests.bootstrap.test_shell import NODE
from tests.fleet import BUCKET, Fleet, report


class Stages(ProgressReporter):
    """Reporter that records what it shows."""

    def __init__(self):
        self.shown = []

    def stage(self, name, total=0, unit=None):
        self.shown.append(name)


@pytest.fixture(scope="module", autouse=True)
def bucket(aws):
    boto3.client("s3").create_bucket(Bucket=BUCKET)


@pytest.fixture
def bars():
    with reporting(Stages()) as stages:
        yield stages


class Brisk(Fleet):
    """Nodes that run no program at boot unless one is given; this process reports for them."""

    groups: ClassVar[set[tuple[str, str]]] = set()

    def add(self, name, kind, count, *others, boot="", **more):
        if not boot:
            self.groups.add((self.name, name))
        return super().add(name, kind, count, *others, boot=boot or ":", **more)


@pytest.fixture(autouse=True)
def brisk(monkeypatch):
    ready = scale_up.is_ready

    def reported(s3, deployment, node):
        if (deployment.name, node.group) in Brisk.groups:
            s3.put_object(Bucket=BUCKET, Key=f"nodes/{node.instance_id}.json", Body=b'{"state": "ready", "log": ""}')
        return ready(s3, deployment, node)

    monkeypatch.setattr(scale_up, "is_ready", reported)
    monkeypatch.setattr(scale_up, "_PAUSE_SECONDS", 0.1)


@pytest.fixture
def fleet(aws):
    made = []

    def make(*arguments, **more):
        made.append(Brisk(*arguments, **more))
        return made[-1]

    yield make
    for each in made:
        for name in each.desired():
            each.scaling.delete_auto_scaling_group(AutoScalingGroupName=f"{each.name}-{name}", ForceDelete=True)


def seen(nodes):
    return [(node.group, node.zone, node.market) for node in nodes]


def refuses(fleet, messages):
    """Assert that the nodes do not start, with the stored reason, and that none is left running."""
    messages.hide(fleet.name, "FLEET")
    with messages.raises(ShoalError), fleet.running():
        pass
    assert set(fleet.desired().values()) == {0}


def test_all_nodes_are_ready_inside_the_block_and_end_after_it(fleet, bars):
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 2, market="spot")
    with both.running() as nodes:
        assert both.desired() == {"fast": 1, "slow": 2}
        assert seen(nodes) == [("fast", "us-east-1a", "on-demand"), *[("slow", "us-east-1a", "spot")] * 2]
    assert both.desired() == {"fast": 0, "slow": 0}
    assert bars.shown == ["start nodes"]


def test_spot_nodes_have_any_available_type_and_nodes_on_demand_the_first_type(fleet, bars, aws, messages):
    mixed = fleet().add("mixed", "g6e.xlarge", 3, "g6.xlarge", "g5.xlarge", market="spot")
    with aws.faults.during(NoCapacity(instance_type="g6e.xlarge")):
        kinds = sorted(node.instance_type for node in mixed.scaled_up())
        assert kinds == ["g5.xlarge", "g6.xlarge", "g6.xlarge"]
    with aws.faults.during(NoCapacity(market="spot")):
        nodes = mixed.scaled_up()
    assert [(node.instance_type, node.market) for node in nodes] == [("g6e.xlarge", "on-demand")] * 3
    assert len(bars.shown) == 3
    messages.check(bars.shown[2])


def test_all_groups_change_zone_and_spot_nodes_are_replaced_until_the_next_request(fleet, bars, aws, messages):
    """Shoal's policy for users allows both changes. Fleets have other names than Shoal's groups."""
    policy = json.loads(re.sub("[Ss]hoal-", "", json.dumps(policies.document(policies.USER))))
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 1, market="spot")
    both.deployment = replace(both.deployment, session=session_with(policy))
    full = NoCapacity(zone="us-east-1a", instance_type="g5.xlarge"), NoCapacity(market="spot")
    with aws.faults.during(*full):
        zones_before = [("fast", "us-east-1b", "on-demand"), ("slow", "us-east-1b", "on-demand")]
        assert seen(both.scaled_up()) == zones_before
    messages.check(next(text for text in bars.shown if "fast" in text))
    assert seen(both.scaled_up()) == [zones_before[0], ("slow", "us-east-1b", "spot")]


def test_groups_leave_a_zone_that_does_not_offer_the_type_of_one_of_them(fleet, bars, aws, messages):
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 1)
    full, lacking = NoCapacity(zone="us-east-1a"), NotOffered(zone="us-east-1b", instance_type="g4dn.xlarge")
    with aws.faults.during(full, lacking):
        assert seen(both.scaled_up()) == [(name, "us-east-1c", "on-demand") for name in ("fast", "slow")]
    messages.check(bars.shown[-1])


def test_a_type_that_no_zone_offers_is_an_error(fleet, bars, aws, messages):
    only = fleet().add("fast", "g5.xlarge", 1)
    with aws.faults.during(NotOffered(instance_type="g5.xlarge")):
        refuses(only, messages)


def test_without_capacity_in_any_zone_the_error_names_the_zones_and_no_node_runs(fleet, bars, aws, messages):
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 1, "g6.xlarge", market="spot")
    with aws.faults.during(NoCapacity(instance_type="g4dn.xlarge"), NoCapacity(instance_type="g6.xlarge")):
        refuses(both, messages)


@pytest.mark.parametrize("network", [{"zones": "c"}, {"zones": "cb", "tagged": False}], ids=["pinned", "existing"])
def test_nodes_stay_in_a_pinned_zone_or_in_an_existing_network(fleet, bars, aws, network, messages):
    only = fleet(**network).add("fast", "g5.xlarge", 1)
    assert [node.zone for node in only.scaled_up()] == ["us-east-1c"]
    with aws.faults.during(NoCapacity(zone="us-east-1c")):
        refuses(only, messages)


def test_readers_start_only_on_request_and_are_listed_after_training_nodes(fleet, bars):
    both = fleet().add("zebra", "g5.xlarge", 1).add("ant", "m5.xlarge", 1, role="read")
    with both.running() as nodes:
        assert both.desired() == {"zebra": 1, "ant": 0}
        assert [(node.role, node.gpus) for node in nodes] == [("train", 1)]
    with both.running(readers=True) as nodes:
        assert both.desired() == {"zebra": 1, "ant": 1}
        assert [(node.group, node.role, node.gpus) for node in nodes] == [("zebra", "train", 1), ("ant", "read", 0)]
    assert both.desired() == {"zebra": 0, "ant": 0}


def test_readers_that_stay_have_no_rank_and_those_of_a_killed_command_end(fleet, bars):
    trains = fleet().add("train", "g5.xlarge", 1)
    stay = trains.add("stay", "m5.xlarge", 1, role="read", start="deploy").add("left", "m5.xlarge", 1, role="read")
    for name in ("stay", "left"):
        stay.scaling.set_desired_capacity(AutoScalingGroupName=f"{stay.name}-{name}", DesiredCapacity=1)
    with stay.running() as nodes:
        assert [node.group for node in nodes] == ["train"]
    assert stay.desired() == {"train": 0, "stay": 1, "left": 0}


def test_nodes_started_with_the_deployment_stay(fleet, bars):
    both = fleet().add("fast", "g5.xlarge", 1, start="deploy").add("slow", "g4dn.xlarge", 1)
    first = both.scaled_up()
    assert both.desired() == {"fast": 1, "slow": 0}
    second = both.scaled_up()
    assert (first[0], first[1].group) == (second[0], second[1].group)


def test_a_node_that_never_reports_is_an_error(fleet, bars, aws, monkeypatch):
    monkeypatch.setattr(scale_up, "READY_SECONDS", 2)
    silent = fleet().add("fast", "g5.xlarge", 1, boot=report(state="ready", log=""))
    with aws.faults.during(SilentBoot()), pytest.raises(ShoalError, match=r"0 of 1 are ready; .*(never reported|AWS)"):
        silent.scaled_up()
    assert silent.desired() == {"fast": 0}


@pytest.mark.parametrize(("types", "minutes"), [(["g5.xlarge"], 15), (["g5.xlarge", "g4dn.metal"], 35)])
def test_bare_metal_may_take_twenty_minutes_more(types, minutes):
    assert scale_up.ready_seconds(types) == minutes * 60


def test_a_replacement_of_a_booting_node_is_waited_for(fleet, bars, monkeypatch):
    one = fleet().add("fast", "g5.xlarge", 1)
    ready, gone = scale_up.is_ready, []

    def fail_first(s3, deployment, node):
        if not gone:
            gone.append(node.instance_id)
            one.ec2.terminate_instances(InstanceIds=gone)
        return node.instance_id not in gone and ready(s3, deployment, node)

    monkeypatch.setattr(scale_up, "is_ready", fail_first)
    (node,) = one.scaled_up()
    assert node.instance_id not in gone


REPORTS = {
    "a failure": b'{"state": "failed", "log": "no wheel", "python": "3.15.0"}',
    "a log that is no text": b'{"state": "ready", "log": ["no text"]}',
    "no object": b'["ready"]',
    "no UTF-8": b'{"state": "\xff',
    "deep nesting": b"[" * 200_000,
    "too long": b'{"state": "' + bytes(2 << 20),
    "empty": b"{}",
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_an_invalid_report_of_a_node_is_an_error(report, messages):
    class Bucket:
        class exceptions:  # noqa: N801
            NoSuchKey = KeyError

        def get_object(self, **_):
            return {"Body": io.BytesIO(report)}

    deployment = Deployment(name="x", topology="x", session=boto3.Session(), outputs={names.OUTPUT_DATA_BUCKET: "x"})
    for filler in ("[" * 10, "\0" * 10):
        messages.hide(filler, "")
    with messages.raises(ShoalError):
        scale_up.is_ready(Bucket(), deployment, NODE)


def test_the_number_of_ready_nodes_is_unknown_if_a_report_is_unreadable(fleet, bars, aws):
    one = fleet().add("fast", "g5.xlarge", 1)
    with one.running():
        (message,) = status.read_groups(Account(), one.name, BUCKET)
        with aws.faults.during(Denied(service="s3", operation="GetObject")):
            (unknown,) = status.read_groups(Account(), one.name, BUCKET)
    assert (message.running, message.ready) == (1, 1)
    assert (unknown.running, unknown.ready) == (1, None)
    assert described(message).endswith("1 running, 1 ready")
    assert "ready nodes unknown" in described(unknown)
