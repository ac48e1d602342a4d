"""Tests of `shoal plan` against the embedded AWS."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bootstrap.aws import cdk
from bootstrap.cli.main import main
from infra import topology
from infra.rules import Finding
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
NODE = {"instance_type": "g5.xlarge", "count": 1}


def shoal(*arguments: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
    said = subprocess.run(
        [sys.executable, "-m", "bootstrap.cli.main", "plan", *arguments],
        cwd=ROOT,
        env={**os.environ, "AWS_ENDPOINT_URL": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert said.returncode == status, said.stdout + said.stderr
    return said


def of(**fields: Any) -> topology.Topology:
    return topology.Topology.model_validate({"name": "mine", "description": "x", **fields})


def test_without_a_name_every_topology_has_a_line_with_price_and_gpus() -> None:
    lines = shoal().stdout.splitlines()
    names = topology.names(ROOT / "topologies")
    assert [line.split()[0] for line in lines[2:]] == names
    assert "retired" in next(line for line in lines if line.startswith("reference-1g3 "))
    listed = {row["topology"]: row for row in json.loads(shoal("--json").stdout)["topologies"]}
    assert listed["demo"]["gpus"] == 2
    assert listed["reference-1p2"]["retired"] == ["p2.xlarge"]
    assert listed["demo"]["hourly"] == pytest.approx(2.065, abs=0.001)


def test_a_topology_of_the_user_is_planned_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text((ROOT / "topologies" / "demo.yaml").read_text())
    own, demo = json.loads(shoal(str(tmp_path / "own.yaml"), "demo", "--offline", "--json").stdout)["plans"]
    assert (own["topology"], own["deployment"], own["hourly"]) == ("own", "own", demo["hourly"])


@pytest.mark.parametrize("arguments", [[], ["demo", "--offline"]])
def test_a_plan_without_aws_does_not_load_boto3(arguments: list[str]) -> None:
    script = f"import sys; from bootstrap.cli.main import main; main({['plan', *arguments]}); print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "boto3" not in said.stdout.splitlines()[-1].split()


def test_on_the_emulator_only_online_errors_refuse_a_deployment() -> None:
    from bootstrap.lifecycle.plan import DeploymentPlan

    def made(*, emulated: bool, asked: list[Finding]) -> DeploymentPlan:
        retired = Finding(level="error", rule="retired_type", sentence="...")
        wanted = of(training=[NODE])
        return DeploymentPlan(
            topology=wanted,
            hours=1,
            bill=[],
            by_use=[],
            offline=[retired],
            online=asked,
            account="",
            emulated=emulated,
        )

    quota = Finding(level="error", rule="quota_too_low", sentence="...")
    assert len(made(emulated=False, asked=[quota]).refused) == 2
    assert made(emulated=True, asked=[quota]).refused == [quota]
    assert made(emulated=True, asked=[]).refused == []


def test_the_plan_names_what_the_budget_counts_by_use() -> None:
    from bootstrap.lifecycle.plan import guard_sentences

    node = {"instance_type": "g5.xlarge", "count": 2}
    shared = of(training=[node], share="efs", network={"egress": "nat"}, guard={"budget": 90})
    said = " ".join(guard_sentences(shared, deployment="mine"))
    counted = "EFS reads; EFS writes; NAT gateway traffic."
    assert f"The budget includes these items charged by use: {counted}" in said


def test_the_other_topologies_are_listed_if_one_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.yaml").write_text("description: x\ntraining: [{instance_type: g5.xlarge, count: 1}]\n")
    (tmp_path / "bad.yaml").write_text("description: x\ntraining: [{instance_type: g5.xlarge, count: none}]\n")
    monkeypatch.setattr(cdk, "TOPOLOGIES", tmp_path)
    assert main(["plan"]) == 1
    said = capsys.readouterr().out
    assert "good" in said
    assert "bad.yaml, line 2: training 1, count is 'none', but must be" in said
