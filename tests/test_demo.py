"""The life cycle of a deployment runs with one command of a user."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from shoal_local_aws.aws import ACCOUNT, REGION

from common.errors import ShoalError
from shoal.aws import cdk
from shoal.demo import life
from tests.infra.grants import mistaken_grants
from tests.processes import MARK, left_behind, marked
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.end_to_end

LAST_LINE = re.compile(
    r"shoal: demo passed: accuracy (\d+\.\d)% \(majority class: (\d+\.\d)%\), (\d+) resources created, 0 left"
)


ROLES = {
    "CleanupRoleF764F261",
    "PreprocessingNodeRole8F54066F",
    "PreprocessingServiceRole532E6474",
    "TrainingNodeRole29574A17",
}
"""Principals that act in the demo. It ends before the guard's first round."""


def template_of_demo(folder: Path) -> dict[str, Any]:
    log = folder / "synth.log"
    account = {"CDK_DEFAULT_ACCOUNT": ACCOUNT, "CDK_DEFAULT_REGION": REGION}
    cdk.run(["synth", "--quiet", "-c", "topology=demo"], environment=account, assembly=folder / "assembly", log=log)
    return dict(json.loads((folder / "assembly" / "Shoal-demo.template.json").read_text()))


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    import aws_cdk  # noqa: F401  # starts the CDK's process, because its temporary folder must outlive this test

    folder = tmp_path / uuid4().hex
    folder.mkdir()
    monkeypatch.setenv(MARK, os.fspath(folder))
    return os.fspath(folder)


def test_a_foreign_model_is_kept_and_another_output_is_requested(tmp_path: Path) -> None:
    model = tmp_path / "model" / "model" / "config.json"
    model.parent.mkdir(parents=True)
    model.write_text("mine")
    (tmp_path / "cdk.log").write_text("an earlier demo's, that never came to a model")
    with pytest.raises(
        ShoalError, match=r"the demo would replace .*model, which is not from an earlier demo; choose another --output"
    ):
        life.run([], tmp_path, say=lambda _: pytest.fail("the demo began"))
    assert {path.name for path in tmp_path.rglob("*")} == {"cdk.log", "model", "config.json"}
    assert model.read_text() == "mine"


def start(*arguments: str | Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["shoal", "demo", *map(os.fspath, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_the_demo_passes_and_leaves_nothing(tmp_path: Path, mark: str) -> None:
    running = start("--output", tmp_path / "out")
    said, announced = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, announced
    passed = LAST_LINE.fullmatch(said.splitlines()[-1])
    assert passed, said
    accuracy, majority, created = map(float, passed.groups())
    assert accuracy > 93 > majority + 20
    assert created > 30
    summary = json.loads((tmp_path / "out" / "model" / "summary.json").read_text())
    fast, slow = summary["rows_of_ranks"]
    assert fast > 1.2 * slow
    assert fast + slow == summary["rows_seen"]
    assert summary["world_size"] == 2
    # No upper bound: the load of this machine can differ while the rates are measured.
    assert 0 < summary["share_of_ideal"] == pytest.approx(summary["samples_per_second"] / sum(summary["own_rates"]))
    assert 0 < summary["balanced"] <= 1
    assert re.search(rf"{fast:,} texts on g5\.xlarge\b", said)
    assert re.search(rf"{slow:,} texts on g4dn\.xlarge, slowed down by a factor of 2", said)
    assert {path.name for path in (tmp_path / "out" / "model").iterdir()} >= {
        "model",
        "record.jsonl",
        "summary.json",
        "node-0.log",
        "node-1.log",
    }
    assert left_behind(mark) == []
    template, by_speed = template_of_demo(tmp_path), [("TrainingNodeRole29574A17", "s3:DeleteObject")]
    found = mistaken_grants(template, tmp_path / "out", stack="Shoal-demo", roles=ROLES, by_speed=by_speed)
    assert list(found) == []
    report = tmp_path / "out" / "report.html"
    assert re.search(rf"report +{report}", said)
    page = report.read_text()
    assert "Loss by epoch" in page
    assert "Shares of the ranks" in page


@pytest.mark.soak
def test_a_planted_leftover_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "_TEXTS", 500)  # their content does not matter here

    def plant() -> None:
        administrator = boto3.Session(profile_name="default")  # the demo's own user has no permission
        administrator.client("s3").create_bucket(Bucket="planted-leftover")
        administrator.client("ec2").create_security_group(GroupName="planted-group", Description="left")

    with pytest.raises(ShoalError, match=r"2 resources are left .*s3 bucket: planted-leftover; security group: sg-"):
        life.run([], tmp_path, say=lambda _: None, before_proof=plant)


@pytest.mark.soak
@pytest.mark.parametrize("stage", ["cdk deploy", "shoal preprocess", "shoal train"])
def test_ctrl_c_ends_everything(tmp_path: Path, mark: str, stage: str) -> None:
    running = start("--output", tmp_path / "out")
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith(f"demo: {stage}"):
            break
    until(lambda: len(marked(mark)) > 2)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert left_behind(mark) == []


@pytest.mark.soak
def test_a_failure_in_the_middle_ends_everything_with_its_reason(tmp_path: Path, mark: str) -> None:
    lines = (f'{{"reviewText": "fine lamp {"x" * n}", "overall": 5}}\n' for n in range(1, 300))
    (tmp_path / "reviews.json").write_text("".join(lines))
    running = start("--input", tmp_path / "reviews.json", "--output", tmp_path / "out")
    _, announced = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    assert re.search(r"s3://\S*dataset\.h5: there is no negative training row", announced.splitlines()[-1]), announced
    assert "Traceback" not in announced
    assert left_behind(mark) == []
