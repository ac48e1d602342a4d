"""Tests of `shoal plan`: the list of topologies, and what a plan contains."""

import json
import subprocess
import sys
from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from infra import preflight, topology
from infra.preflight import Finding
from shoal.aws import cdk
from shoal.deployments.plan import guard_sentences, make_plan
from tests.shoal.cli.command import shoal_here
from tests.shoal.deployments.preflight import GPU, TRAINING, topology_of


def test_without_a_name_every_topology_has_a_line_with_price_and_gpus() -> None:
    lines = shoal_here("plan").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == topology.names_in(cdk.TOPOLOGIES)
    assert "retired" in next(line for line in lines if line.startswith("reference-1g3 "))
    listed = {row["topology"]: row for row in json.loads(shoal_here("plan", "--json").stdout)["topologies"]}
    assert listed["demo"]["gpus"] == 2
    assert listed["reference-1p2"]["retired"] == ["p2.xlarge"]
    assert listed["demo"]["hourly"] == pytest.approx(2.065, abs=0.001)


def test_a_topology_of_the_user_is_planned_from_its_file(tmp_path) -> None:
    (tmp_path / "own.yaml").write_text((cdk.TOPOLOGIES / "demo.yaml").read_text())
    done = shoal_here("plan", tmp_path / "own.yaml", "demo", "--offline", "--json")
    own, demo = json.loads(done.stdout)["plans"]
    assert (own["topology"], own["deployment"], own["hourly"]) == ("own", "own", demo["hourly"])


def test_plans_without_aws_do_not_load_boto3() -> None:
    commands = [["plan"], ["plan", "demo", "--offline"]]
    script = f"import sys; from shoal.cli.main import main; list(map(main, {commands})); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=cdk.ROOT, capture_output=True, text=True, check=True)
    assert "boto3" not in done.stdout.splitlines()[-1].split()


def test_at_an_endpoint_on_this_machine_only_online_errors_refuse_a_deployment(monkeypatch) -> None:
    retired = Finding(level="error", rule="retired_type", sentence="...")
    quota = Finding(level="error", rule="quota_too_low", sentence="...")

    def refused(endpoint: str | None, *online: Finding) -> Sequence[Finding]:
        monkeypatch.setattr("shoal.deployments.preflight.online", lambda *_, **__: ("", online))
        return make_plan(topology_of(training=[GPU]), deployment="mine", session=Mock(), endpoint=endpoint).refused

    monkeypatch.setattr(preflight, "offline", lambda _: [retired])
    assert refused(None, quota) == [retired, quota]
    assert refused("http://127.0.0.1:4566", quota) == [quota]
    assert refused("http://127.0.0.1:4566") == []


def test_the_other_topologies_are_listed_if_one_is_invalid(tmp_path, monkeypatch, messages) -> None:
    for name, count in (("good", 1), ("bad", "none")):
        text = f"description: x\ntraining: [{{instance_type: g5.xlarge, count: {count}}}]\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    monkeypatch.setattr(cdk, "TOPOLOGIES", tmp_path)
    done = shoal_here("plan")
    assert done.returncode == 1
    assert "\ngood " in done.stdout
    messages.hide(tmp_path.name, "TOPOLOGIES")
    messages.check(done.stdout.splitlines()[-1])


def test_the_plan_names_what_the_budget_counts_by_use(messages) -> None:
    shared = topology_of(network={"egress": "nat"}, guard={"budget": 90}, **TRAINING)
    sentences = " ".join(guard_sentences(shared, deployment="mine"))
    messages.check(sentences[sentences.index("The budget includes") :])
