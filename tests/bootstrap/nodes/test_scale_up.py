"""Node groups scaled up on the embedded AWS, where capacity is short, boots fail, and nodes stay."""

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import Denied, NoCapacity, SilentBoot
from tests.local_aws.accounts import session_with

from bootstrap.aws.account import Account
from bootstrap.aws.deployment import Deployment
from bootstrap.cli.deployments.status import _described as described
from bootstrap.lifecycle import status
from bootstrap.nodes import scale_up
from bootstrap.nodes.fleet import GpuNode
from bootstrap.progress import Bars
from common.errors import ShoalError
from infra import policies, topology
from tests.bootstrap.test_shell import NODE
from tests.fleet import BUCKET, Fleet, report


class Stages(Bars):
    """Remembers what was said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def stage(self, name: str, total: int, unit: str | None = None) -> None:
        self.said.append(name)
        super().stage(name, total, unit)


@pytest.fixture(scope="module", autouse=True)
def bucket(aws: EmbeddedAws) -> None:
    boto3.client("s3").create_bucket(Bucket=BUCKET)


@pytest.fixture
def bars() -> Stages:
    return Stages()


class Brisk(Fleet):
    """Nodes that run no program when they boot, unless it is given: this process reports in their place."""

    groups: ClassVar[set[tuple[str, str]]] = set()

    def add(self, name: str, kind: str, count: int, *others: str, boot: str = "", **more: Any) -> Self:
        if not boot:
            self.groups.add((self.name, name))
        return super().add(name, kind, count, *others, boot=boot or ":", **more)


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = scale_up.is_ready

    def reported(s3: Any, deployment: Deployment, node: GpuNode) -> bool:
        if (deployment.name, node.group) in Brisk.groups:
            s3.put_object(Bucket=BUCKET, Key=f"nodes/{node.instance_id}.json", Body=b'{"state": "ready", "log": ""}')
        return ready(s3, deployment, node)

    monkeypatch.setattr(scale_up, "is_ready", reported)
    monkeypatch.setattr(scale_up, "_PAUSE_SECONDS", 0.1)


@pytest.fixture
def fleet(aws: EmbeddedAws) -> Iterator[Callable[..., Fleet]]:
    made: list[Fleet] = []

    def make(*arguments: Any, **more: Any) -> Fleet:
        made.append(Brisk(*arguments, **more))
        return made[-1]

    yield make
    for each in made:
        for name in each.desired():
            each.scaling.delete_auto_scaling_group(AutoScalingGroupName=f"{each.name}-{name}", ForceDelete=True)


def seen(nodes: list[GpuNode]) -> list[tuple[str, str, str]]:
    return [(node.group, node.zone, node.market) for node in nodes]


def refuses(fleet: Fleet, bars: Stages, sentence: str) -> None:
    """Its nodes are not started, for this reason, and none is left."""
    with pytest.raises(ShoalError, match=sentence), scale_up.scaled_up(fleet.deployment, bars):
        pass
    assert set(fleet.desired().values()) == {0}


def test_all_nodes_are_ready_inside_and_none_is_left_outside(fleet, bars) -> None:
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 2, market="spot")
    with scale_up.scaled_up(both.deployment, bars) as nodes:
        assert both.desired() == {"fast": 1, "slow": 2}
        assert seen(nodes) == [
            ("fast", "us-east-1a", "on-demand"),
            ("slow", "us-east-1a", "spot"),
            ("slow", "us-east-1a", "spot"),
        ]
    assert both.desired() == {"fast": 0, "slow": 0}
    assert bars.said == ["start nodes"]


def test_missing_spot_nodes_are_taken_on_demand_and_the_next_request_is_for_spot_again(fleet, bars, aws) -> None:
    cheap = fleet().add("cheap", "g5.xlarge", 2, market="spot")
    with aws.faults.during(NoCapacity(market="spot")):
        assert seen(cheap.scaled_up(bars)) == [("cheap", "us-east-1a", "on-demand")] * 2
    assert bars.said[1:] == [
        "start nodes: cheap on demand ($1.006 an hour each), as the spot market of us-east-1a has none"
    ]
    assert seen(cheap.scaled_up(bars)) == [("cheap", "us-east-1a", "spot")] * 2


def test_spot_nodes_of_several_types_are_those_that_there_are_and_on_demand_the_first_of_the_list(
    fleet, bars, aws
) -> None:
    mixed = fleet().add("mixed", "g6e.xlarge", 3, "g6.xlarge", "g5.xlarge", market="spot")
    with aws.faults.during(NoCapacity(instance_type="g6e.xlarge")):
        kinds = sorted(node.instance_type for node in mixed.scaled_up(bars))
        assert kinds == ["g5.xlarge", "g6.xlarge", "g6.xlarge"]
    with aws.faults.during(NoCapacity(market="spot")):
        nodes = mixed.scaled_up(bars)
    assert [(node.instance_type, node.market) for node in nodes] == [("g6e.xlarge", "on-demand")] * 3
    assert bars.said[2:] == [
        "start nodes: mixed on demand ($0.8048 to $1.861 an hour each), as the spot market of us-east-1a has none"
    ]
    with aws.faults.during(NoCapacity()):
        refuses(
            mixed, bars, r"AWS has no g6e.xlarge or g6.xlarge or g5.xlarge for 'mixed' in us-east-1a, us-east-1b and"
        )


def test_all_groups_move_when_one_finds_no_capacity(fleet, bars, aws) -> None:
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 1, market="spot")
    with aws.faults.during(NoCapacity(zone="us-east-1a", instance_type="g5.xlarge")):
        there = [("fast", "us-east-1b", "on-demand"), ("slow", "us-east-1b", "spot")]
        assert seen(both.scaled_up(bars)) == there
    assert bars.said[1:] == ["start nodes in us-east-1b, as us-east-1a has none for fast"]
    assert seen(both.scaled_up(bars)) == there  # what has capacity is not left


def test_a_user_with_shoals_policy_may_change_the_zone_and_the_market(fleet, bars, aws) -> None:
    policy = json.loads(
        re.sub("[Ss]hoal-", "", json.dumps(policies.document(policies.USER)))
    )  # fleets have other names
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 1, market="spot")
    both.deployment = replace(both.deployment, session=session_with(policy))
    full = NoCapacity(zone="us-east-1a", instance_type="g5.xlarge"), NoCapacity(market="spot")
    with aws.faults.during(*full):
        there = [("fast", "us-east-1b", "on-demand"), ("slow", "us-east-1b", "on-demand")]
        assert seen(both.scaled_up(bars)) == there
    assert seen(both.scaled_up(bars)) == [there[0], ("slow", "us-east-1b", "spot")]


def test_without_capacity_anywhere_it_reports_what_was_tried_and_no_node_runs(fleet, bars, aws) -> None:
    both = fleet().add("fast", "g5.xlarge", 1).add("slow", "g4dn.xlarge", 1, market="spot")
    with aws.faults.during(NoCapacity(instance_type="g4dn.xlarge")):
        refuses(
            both, bars, r"no g4dn.xlarge for 'slow' in us-east-1a, us-east-1b and us-east-1c now, and says: \"We cur"
        )


@pytest.mark.parametrize("network", [{"zones": "c"}, {"zones": "cb", "tagged": False}])
def test_nodes_stay_in_a_pinned_zone_or_in_an_existing_network(fleet, bars, aws, network) -> None:
    only = fleet(**network).add("fast", "g5.xlarge", 1)
    assert [node.zone for node in only.scaled_up(bars)] == ["us-east-1c"]
    with aws.faults.during(NoCapacity(zone="us-east-1c")):
        refuses(only, bars, r"in us-east-1c now, .* or take another zone, another instance type")


def test_readers_start_only_where_they_are_asked_for_and_after_those_that_train(fleet, bars) -> None:
    both = fleet().add("zebra", "g5.xlarge", 1).add("ant", "m5.xlarge", 2, role="read")
    with scale_up.scaled_up(both.deployment, bars) as nodes:
        assert both.desired() == {"zebra": 1, "ant": 0}
        assert [(node.role, node.gpus) for node in nodes] == [("train", 1)]
    with scale_up.scaled_up(both.deployment, bars, readers=True) as nodes:
        assert both.desired() == {"zebra": 1, "ant": 2}
        assert [(node.group, node.role, node.gpus) for node in nodes] == [
            ("zebra", "train", 1),
            ("ant", "read", 0),
            ("ant", "read", 0),
        ]
    assert both.desired() == {"zebra": 0, "ant": 0}


def test_readers_that_stay_are_no_ranks_and_those_that_a_killed_command_left_end(fleet, bars) -> None:
    trains = fleet().add("train", "g5.xlarge", 1)
    stay = trains.add("stay", "m5.xlarge", 1, role="read", start="deploy").add("left", "m5.xlarge", 1, role="read")
    for name in ("stay", "left"):
        stay.scaling.set_desired_capacity(AutoScalingGroupName=f"{stay.name}-{name}", DesiredCapacity=1)
    with scale_up.scaled_up(stay.deployment, bars) as nodes:
        assert [node.group for node in nodes] == ["train"]
    assert stay.desired() == {"train": 0, "stay": 1, "left": 0}


def test_nodes_that_started_with_the_deployment_stay(fleet, bars) -> None:
    both = fleet().add("fast", "g5.xlarge", 1, start="deploy").add("slow", "g4dn.xlarge", 1)
    first = both.scaled_up(bars)
    assert both.desired() == {"fast": 1, "slow": 0}
    second = both.scaled_up(bars)
    assert (first[0], first[1].group) == (second[0], second[1].group)


def test_a_node_that_never_reports_ends_it(fleet, bars, aws, monkeypatch) -> None:
    monkeypatch.setattr(scale_up, "READY_SECONDS", 2)
    silent = fleet().add("fast", "g5.xlarge", 1, boot=report(state="ready", log=""))
    printed = r"i-\w+ \(fast\) never reported; what it printed: aws ec2 get-console-output"
    with aws.faults.during(SilentBoot()):
        refuses(silent, bars, rf"0 of 1 are ready; (.*; )?({printed}|AWS)")


@pytest.mark.parametrize(("types", "minutes"), [(["g5.xlarge"], 15), (["g5.xlarge", "g4dn.metal"], 35)])
def test_bare_metal_may_take_twenty_minutes_more(types, minutes) -> None:
    assert scale_up.ready_seconds(types) == minutes * 60


def test_a_node_that_is_replaced_while_it_boots_is_waited_for_anew(fleet, bars, monkeypatch) -> None:
    one = fleet().add("fast", "g5.xlarge", 1)
    ready, gone = scale_up.is_ready, []

    def fail_first(s3, deployment, node) -> bool:
        if not gone:
            gone.append(node.instance_id)
            one.ec2.terminate_instances(InstanceIds=gone)
        return node.instance_id not in gone and ready(s3, deployment, node)

    monkeypatch.setattr(scale_up, "is_ready", fail_first)
    (node,) = one.scaled_up(bars)
    assert node.instance_id not in gone


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            {"state": "failed", "log": "no wheel", "python": "3.15.0"},
            r", which has Python 3.15.0, failed to boot: no w",
        ),
        ({"state": "ready", "log": ["no text"]}, "its report cannot be read"),
        (["ready"], "its report cannot be read"),
        (b'{"state": "\xff', "its report cannot be read"),
        (b"[" * 200_000, "its report cannot be read"),
        (b'{"state": "' + bytes(2 << 20), "its report cannot be read"),
        ({}, "its log is empty"),
    ],
)
def test_a_nodes_report_is_used_as_text_only(said, told) -> None:
    class Bucket:
        class exceptions:  # noqa: N801
            NoSuchKey = KeyError

        def get_object(self, **_: str) -> dict[str, io.BytesIO]:
            return {"Body": io.BytesIO(said if isinstance(said, bytes) else json.dumps(said).encode())}

    deployment = Deployment(name="x", topology="x", session=boto3.Session(), outputs={topology.OUTPUT_DATA_BUCKET: "x"})
    with pytest.raises(ShoalError, match=told):
        scale_up.is_ready(Bucket(), deployment, NODE)


def test_the_number_of_ready_nodes_is_unknown_if_a_report_may_not_be_read(fleet, bars, aws) -> None:
    one = fleet().add("fast", "g5.xlarge", 1)
    with scale_up.scaled_up(one.deployment, bars):
        (told,) = status.groups_now(Account(), one.name, BUCKET)
        with aws.faults.during(Denied(service="s3", operation="GetObject")):
            (untold,) = status.groups_now(Account(), one.name, BUCKET)
    assert (told.running, told.ready) == (1, 1)
    assert (untold.running, untold.ready) == (1, None)
    assert described(told).endswith("1 running, 1 ready")
    assert "ready nodes unknown" in described(untold)
