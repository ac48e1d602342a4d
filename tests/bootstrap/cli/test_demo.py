"""What the demo tells a person is understood without the documents."""

import json
from pathlib import Path

import pytest

from bootstrap.cli.demo import rows
from bootstrap.cli.main import main
from bootstrap.demo import life
from bootstrap.demo.life import DemoResult

RESULT = DemoResult(
    created={"s3 bucket": 3},
    counts={"lines": 1100, "malformed": 7, "empty": 2, "distinct": 1000, "train": 900, "test": 100},
    summary={
        "rows": 855,
        "epochs": 12,
        "seconds": 5.25,
        "global_batch": 64,
        "nodes": [
            {"instance_type": "g5.xlarge", "group": "fast"},
            {"instance_type": "g4dn.xlarge", "group": "slow"},
        ],
        "rows_of_ranks": [7000, 3260],
        "balanced": 0.93,
        "share_of_ideal": 0.6,
        "lost": {"imbalance": 0.03, "communication": 0.02, "data": 0.005, "checkpoints": 0.005, "rest": 0.01},
        "launch": {"stages": [{"name": "start the nodes", "seconds": 6.25, "dollars": 0.1}]},
        **dict.fromkeys(("accuracy", "majority", "balanced_accuracy", "f1_positive", "f1_negative"), 0.5),
    },
    predictions=[("A \x1b[31mfine lamp", "positive", 0.9)],
    dollars_an_hour=2.1,
    seconds={"cdk deploy": 30.0, "shoal train": 25.0, "cdk destroy": 20.0},
    total_seconds=70.0,
)


def told() -> dict[str, str]:
    return dict(rows(RESULT, slowed={1: 2.0}, output=Path("out")))


def test_each_node_is_shown_with_its_texts_and_its_slowdown() -> None:
    assert told()["  node 1, g5.xlarge (fast)"] == "7,000 texts"
    assert told()["time"] == "70 s"  # the last stages overlap
    assert told()["  node 2, g4dn.xlarge (slow)"] == "3,260 texts; this machine slows it down 2 times"


def test_the_speed_is_shown_with_its_reference_and_the_reasons_for_the_rest() -> None:
    assert told()["  speed"] == "93.0% of the sum of the nodes' speeds during the training"
    assert told()["  lost"] == (
        "3.0% one waited for the other, 2.0% adding up gradients, 0.5% choosing texts, 0.5% checkpoints, "
        "1.0% the rest of a step"
    )
    assert told()["  speed in bursts"] == "60.0% of the sum of their speeds in short bursts"


def test_texts_are_shown_without_commands_to_the_terminal() -> None:
    assert not any("\x1b" in cell for row in rows(RESULT, slowed={}, output=Path("out")) for cell in row)


def test_the_json_has_the_seconds_of_each_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(life, "run", lambda *_, **__: RESULT)
    assert main(["demo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] == RESULT.seconds
