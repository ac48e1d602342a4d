"""Commands on known, unknown, deleted and busy deployments, and the list of all deployments."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import Denied

from bootstrap.node.documents import RequestDocument, RunRequest
from common import names
from common.errors import ShoalError
from infra import topology
from shoal.deployments import status
from shoal.deployments.bill import Bill
from tests.shoal.cli.command import Done, shoal_here
from tests.shoal.deployments.removal.plants import TOPIC, delete_stack, make_stack

TAGS = [{"Key": names.TAG_OWNER, "Value": "ada"}, {"Key": names.TAG_TOPOLOGY, "Value": "starter"}]


@pytest.fixture(scope="module", autouse=True)
def deployments(shared_clients) -> None:
    """Deployments: `starter`, `far` in another region, and `gone`, which is deleted."""
    for name, region in {"starter": "us-east-1", "far": "eu-west-1", "gone": "us-east-1"}.items():
        make_stack(topology.stack_name(name), TOPIC, region, Tags=TAGS)
    delete_stack(topology.stack_name("gone"))


@pytest.mark.parametrize(
    "command",
    [
        "destroy strater --yes",
        "destroy strater --dry-run",
        "status strater",
        "costs strater",
        "logs strater",
        "logs strater --run strater.20260102T030405-0a1b",
        "extend strater --hours 1",
        "fetch strater --output nowhere",
        "attach strater --output nowhere",
        "stop strater",
        "ssh strater 1",
        "logs gone",
    ],
)
def test_an_unknown_deployment_is_reported_with_the_existing_ones(command, messages) -> None:
    done = shoal_here(*command.split())
    assert (done.returncode, done.stdout) == (1, "")
    messages.check(done.stderr.rstrip())


def test_destroy_reports_a_deleted_deployment_and_one_in_another_region(messages) -> None:
    again = shoal_here("destroy", "gone", "--yes")
    assert (again.returncode, again.stdout) == (0, "nothing of 'gone' is left to destroy\n")
    far = shoal_here("destroy", "far", "--yes")
    assert far.returncode == 1
    messages.check(far.stderr.rstrip())


def test_status_of_a_deleted_deployment_says_when_it_was_deleted_and_the_list_if_its_guard_did_it(aws) -> None:
    by_guard = "ended"
    make_stack(topology.stack_name(by_guard), TOPIC, Tags=TAGS)
    delete_stack(topology.stack_name(by_guard), ClientRequestToken="guard-budget-0-50-0a1b2c3d")
    assert shoal_here("status", by_guard).stdout.startswith("deletion    its guard deleted it at ")
    assert "it was deleted at" in shoal_here("status", "gone").stdout
    listed = shoal_here("status")
    assert listed.stdout.startswith("ended: its guard deleted it at ")
    assert "because its budget of $0.50 is spent" in listed.stdout
    assert list(json.loads(shoal_here("status", "--json").stdout)["deletions"]) == [by_guard]


def test_the_bill_of_a_deleted_deployment_covers_30_days(monkeypatch) -> None:
    fetch_bill = Mock(return_value=Bill(since="2026-01-02", services={}))
    monkeypatch.setattr("shoal.deployments.bill.fetch_bill", fetch_bill)
    assert shoal_here("costs", "gone").returncode == 0
    since = fetch_bill.call_args.args[2]
    assert timedelta(days=30) <= datetime.now(UTC) - since < timedelta(days=31)


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "InvalidLaunchTemplateId.NotFound"])
def test_unknown_instance_types_make_the_price_unknown_but_a_deleted_template_does_not(code, monkeypatch) -> None:
    refused = Mock(side_effect=ClientError({"Error": {"Code": code}}, "DescribeLaunchTemplateVersions"))
    monkeypatch.setattr(status.scaling_group, "instance_types", refused)
    is_denied, types = code == "UnauthorizedOperation", status._instance_types(Mock(), {})
    group = SimpleNamespace(name="train", nodes=["g5.xlarge"], instance_types=types, size=2)
    guard = SimpleNamespace(unpriced="", standing=0.5, job=0.0, gpu={"g5.xlarge": 1.0}, emr={})
    now = status.Status(name="pair", stack={}, groups=[group], cluster=None, guard=guard)  # type: ignore[arg-type]
    assert (now.rate, now.most, len(now.unanswered)) == (1.5, None if is_denied else 0.5, is_denied)


class Busy:
    """Deployment with a requested training. Its nodes are unknown, so the training may be running."""

    def __init__(self, name: str) -> None:
        self.name, self.run = name, f"{name}.20260102T030405-0a1b"
        own = {"Key": names.TAG_DEPLOYMENT, "Value": name}
        outputs = {names.OUTPUT_DATA_BUCKET: {"Value": {"Ref": "Data"}}}
        data = {"Data": {"Type": "AWS::S3::Bucket"}}
        self.bucket = make_stack(topology.stack_name(name), data, outputs=outputs, Tags=[*TAGS, own])["Data"]
        dataset = f"datasets/{'0' * 32}/dataset.h5"
        self.wanted = RunRequest(run=self.run, token="0000000a", trainers=1, share=None, options={}, dataset=dataset)
        self.put(RequestDocument(runs=(self.wanted,)).to_json())

    def put(self, text: str) -> None:
        boto3.client("s3").put_object(Bucket=self.bucket, Key=names.request_key(self.name), Body=text.encode())

    def destroy(self, *options: str) -> Done:
        return shoal_here("destroy", self.name, *options)

    def exists(self) -> bool:
        return self.bucket in {each["Name"] for each in boto3.client("s3").list_buckets()["Buckets"]}


def test_yes_does_not_end_a_running_training(aws, messages) -> None:
    busy = Busy("busy")
    messages.hide(busy.bucket, "BUCKET")
    with aws.faults.during(Denied(service="autoscaling", operation="*")):
        refused = busy.destroy("--yes")
        assert refused.returncode == 1
        messages.check(refused.stderr.rstrip())
        busy.put(RequestDocument(runs=(replace(busy.wanted, stop=True),)).to_json())
        assert json.loads(busy.destroy("--dry-run", "--json").stdout)["trains"] == []
        busy.put("{")
        messages.check(busy.destroy("--yes").stderr.splitlines()[-1])
        busy.put(RequestDocument(runs=(busy.wanted,)).to_json())
        assert busy.exists()
        assert f"{busy.run} did not stop: " in busy.destroy("--yes", "--stop-runs").stderr
    assert not busy.exists()


def test_trainings_are_stopped_before_their_deployment_is_destroyed(monkeypatch) -> None:
    busy = Busy("at-work")
    monkeypatch.setattr("shoal.deployments.status.read_status", Mock(side_effect=ShoalError("nobody knows")))
    monkeypatch.setattr("shoal.aws.fleet.groups", lambda *_, **__: [])
    kept = shoal_here("destroy", "at-work", "--stop-runs", stdin=b"n\nn\n", terminal=True)
    assert (kept.returncode, f"First stop {busy.run} with a checkpoint" in kept.stderr) == (1, True)
    assert f"would be aborted: {busy.run}" in kept.stderr
    done = busy.destroy("--yes", "--stop-runs")
    assert (done.returncode, f"{busy.run}: stopped\n" in done.stderr) == (0, True)
    assert "would be aborted" not in done.stderr
    assert not busy.exists()


def test_status_without_a_name_lists_the_deployments_of_all_regions(aws) -> None:
    listed = json.loads(shoal_here("status", "--json").stdout)
    state = {"state": "CREATE_COMPLETE", "owner": "ada", "topology": "starter"}
    unknown = {"dollars_an_hour": None, "ends": None, "deletion": None, "error": None}
    assert listed["deployments"] == [
        {"deployment": name, "region": region, **state, **unknown}
        for name, region in (("starter", "us-east-1"), ("far", "eu-west-1"))
    ]
    (far,) = json.loads(shoal_here("status", "--region", "eu-west-1", "--json").stdout)["deployments"]
    assert far["deployment"] == "far"
    assert "far" in shoal_here("status").stdout
    with aws.faults.during(Denied(service="cloudformation", operation="DescribeStacks")):
        unread = json.loads(shoal_here("status", "--json").stdout)["deployments"]
    assert ["AccessDenied" in each["error"] for each in unread] == [True, True]
    with aws.faults.during(Denied(service="cloudformation", operation="DescribeStackEvents")):
        undated = shoal_here("status", "--region", "us-east-1")
    assert (undated.returncode, "starter" in undated.stdout) == (1, True)
    assert "the recent deletions in us-east-1: " in undated.stderr
    with aws.faults.during(Denied(service="ec2", operation="DescribeRegions")):
        assert "all other regions" in shoal_here("status").stdout
