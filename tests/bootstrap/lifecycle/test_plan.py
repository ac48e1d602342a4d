"""`shoal plan` as its user meets it; nobody is asked but the embedded AWS."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bootstrap.aws import cdk
from bootstrap.cli.main import main
from bootstrap.lifecycle.plan import guard_sentences
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


def test_a_plan_has_the_bill_by_part_the_price_of_the_hours_and_what_the_guard_will_do() -> None:
    made = json.loads(shoal("demo", "--offline", "--hours", "3", "--json").stdout)["plans"][0]
    assert {row["part"] for row in made["bill"]} == {"preprocessing", "training"}
    assert made["hourly"] == pytest.approx(sum(row["hourly"] for row in made["bill"]))
    assert made["price"] == pytest.approx(3 * made["hourly"])
    assert (made["asked"], made["refused"]) == ("not asked", False)
    said = shoal("demo", "--offline", "--hours", "3").stdout
    for part in (
        "core m5.xlarge",
        "3 h with everything at work: $6.2",
        "endpoints: $0.02 an hour less.",
        "The guard:",
        "S3, what is kept: $0.023",
    ):
        assert part in said


def test_a_plan_says_after_how_long_a_run_is_stopped_for_its_costs(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text((ROOT / "topologies" / "starter.yaml").read_text() + "\nmax_dollars: 10\n")
    said = shoal(str(own), "--offline").stdout
    hours = 10 / (0.526 + 150 * 0.08 / 730)
    assert (
        "A run is stopped with a checkpoint before its nodes cost $10.00 (max_dollars): after "
        f"{hours:.1f} h of the nodes that train."
    ) in said
    plans = json.loads(shoal(str(own), "starter", "--offline", "--json").stdout)["plans"]
    assert [each["max_dollars"] for each in plans] == [10, None]


def test_a_refused_plan_ends_with_status_1_and_names_an_equivalent_type() -> None:
    said = shoal("starter", "reference-1p2", "--offline", status=1).stdout
    assert "error: training 1 (p2-xlarge): AWS retired p2.xlarge (2024) and starts none" in said
    assert "take g4dn.xlarge, today's equivalent." in said


def test_an_unknown_topology_is_reported_with_the_nearest_one() -> None:
    assert "did you mean starter" in shoal("startre", status=1).stderr


def test_the_guard_is_described_with_the_topologys_own_figures() -> None:
    guard = {"max_hours": 5, "idle_minutes": 10, "budget": 20, "mail": "me@example.org"}
    hourly = 1.006 + 150 * 0.08 / 730 + 0.02
    wanted = of(training=[NODE], guard=guard, data={"keep": True}, network={"shell": True})
    assert guard_sentences(wanted, deployment="mine") == [
        "It ends the GPU nodes after 10 minutes without work; $0.02 an hour is left.",
        "It deletes the stack 5 hours after the first deployment; the data bucket stays, and you pay for what is in "
        f"it. These hours cost at most ${5 * hourly:.2f}, besides what is paid by use; `shoal extend mine --hours H` "
        "adds more.",
        f"It also deletes the stack when $20.00 are spent: after {20 / hourly:.1f} h with everything at work.",
        "It warns me@example.org before it deletes the stack; AWS first sends a mail there, which must be confirmed.",
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, ", and the data bucket with it, unless it holds runs that were not fetched: then it stays, and you pay"),
        ({"keep": False}, ", and the data bucket with it; fetch the models before (`shoal fetch`)"),
    ],
)
def test_what_becomes_of_the_data_is_described(data: dict[str, Any], said: str) -> None:
    sentence = guard_sentences(of(training=[NODE], data=data), deployment="mine")[1]
    assert sentence.startswith(f"It deletes the stack 12 hours after the first deployment{said}")


def test_readers_are_a_part_of_the_bill_and_no_gpus() -> None:
    (plan,) = json.loads(shoal("embeddings-4x1gpu-2readers", "--offline", "--json").stdout)["plans"]
    assert [(row["part"], row["quantity"]) for row in plan["bill"] if row["item"] == "m5.xlarge"] == [("reading", 2)]
    assert plan["guard"][0].startswith("It ends the nodes that train and read after 30 minutes without work; ")
    listed = {each["topology"]: each["gpus"] for each in json.loads(shoal("--json").stdout)["topologies"]}
    assert listed["embeddings-4x1gpu-2readers"] == listed["embeddings-4x1gpu"] == 4


def test_on_the_emulator_only_the_online_findings_are_a_reason_to_refuse() -> None:
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


def test_the_other_topologies_are_listed_if_one_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.yaml").write_text("description: x\ntraining: [{instance_type: g5.xlarge, count: 1}]\n")
    (tmp_path / "bad.yaml").write_text("description: x\ntraining: [{instance_type: g5.xlarge, count: none}]\n")
    monkeypatch.setattr(cdk, "TOPOLOGIES", tmp_path)
    assert main(["plan"]) == 1
    said = capsys.readouterr().out
    assert "good" in said
    assert "bad.yaml, line 2: training 1, count is 'none', but must be" in said
