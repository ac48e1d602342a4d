"""What a person reads at the end of a training."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from bootstrap.aws.deployment import Deployment
from bootstrap.cli.main import main
from bootstrap.cli.train import rows
from bootstrap.interrupt import ENDING_SIGNALS
from bootstrap.training.places.deployment import OnDeployment
from trainer.config import TrainConfig

QUICK = {"order": 1.0, "rows": 1.0, "forward": 20.0, "backward": 30.0, "pack": 2.0, "all_reduce": 44.0, "update": 2.0}
SLOW = {"order": 1.0, "rows": 1.0, "forward": 36.0, "backward": 54.0, "pack": 2.0, "all_reduce": 4.0, "update": 2.0}
CLASSES = ("  negative", "  positive")
HEAD = "data  forward  backward  all-reduce  wait  rest"


def summary(ranks: list[dict[str, float]], **more: Any) -> dict[str, Any]:
    return {
        "rows_seen": 1_000_000,
        "seconds": 100.0,
        "samples_per_second": 10_000.0,
        "rows_of_ranks": [100] * len(ranks),
        "stopped": False,
        "share_of_ideal": 0.7,
        "balanced": 0.8,
        "lost": {"imbalance": 0.1, "communication": 0.04, "data": 0.02, "checkpoints": 0.01, "rest": 0.03},
        "times": {"loading": 2.0, "training": 98.0, "checkpoints": 2.0},
        "wall": 102.0,
        "profile": ranks,
        **dict.fromkeys(("accuracy", "majority", "balanced_accuracy", "macro_f1", "f1_positive", "f1_negative"), 0.5),
        "log_loss": 0.25,
        "uncalibrated_log_loss": 0.3,
        "temperature": 1.5,
        "threshold": 0.625,
        "confusion": {"classes": ["negative", "positive"], "counts": [[5, 1234], [20, 300]]},
        **more,
    }


def node(group: str, gpus: int, market: str = "on-demand") -> dict[str, Any]:
    return {"group": group, "gpus": gpus, "market": market, "instance_type": "g5.xlarge", "zone": "a"}


def told(result: dict[str, Any]) -> list[tuple[str, str]]:
    return rows(result, Path("out"))


def test_the_time_of_a_rank_adds_up_and_its_wait_is_shown_by_itself() -> None:
    found = dict(told(summary([QUICK, SLOW])))
    assert found["time of the steps"] == HEAD
    assert found["  rank 0"].split() == ["2.0%", "20.0%", "30.0%", "4.0%", "40.0%", "4.0%"]
    assert found["  rank 1"].split() == ["2.0%", "36.0%", "54.0%", "4.0%", "0.0%", "4.0%"]


def test_figures_stand_below_their_heads() -> None:
    found = dict(told(summary([QUICK, SLOW])))
    assert [found["  rank 0"].index(share) for share in ("2.0%", "20.0%", "30.0%", "4.0%", "40.0%")] == [
        HEAD.index(head) for head in ("data", "forward", "backward", "all-reduce", "wait")
    ]


def test_a_stopped_run_is_shown_with_its_time_and_how_to_continue() -> None:
    found = dict(told(summary([QUICK, SLOW], stopped=True)))
    assert {"balanced", "share of ideal", "time of the steps", "  rank 1"} < found.keys()
    assert found["stopped"] == "with a checkpoint; to continue, type the same command with --resume"
    assert "accuracy" not in found


def test_a_slowed_rank_is_shown_with_its_sleep() -> None:
    found = dict(told(summary([QUICK, {**SLOW, "slowed": 100.0}])))
    assert found["time of the steps"] == HEAD.replace("backward", "backward  slowed")
    assert found["  rank 1"].split()[3] == "50.0%"


def test_many_ranks_are_shown_by_their_node_groups() -> None:
    found = told(summary([QUICK] * 8 + [SLOW] * 4, nodes=[node("fast", 8), node("small", 4)]))
    profile = [(name, line.split()) for name, line in found if name.startswith("  ") and name not in CLASSES]
    assert profile == [
        ("  fast", ["2.0%", "20.0%", "30.0%", "4.0%", "40.0%", "4.0%"]),
        ("  small", ["2.0%", "36.0%", "54.0%", "4.0%", "0.0%", "4.0%"]),
    ]


def test_many_ranks_on_one_machine_have_one_line() -> None:
    assert [name for name, _ in told(summary([QUICK] * 9)) if name.startswith("  ")] == [*CLASSES, "  9 ranks"]


def of_classes(*names: str) -> dict[str, Any]:
    """The summary of a run on so many classes."""
    result = summary([QUICK], confusion={"classes": list(names), "counts": [[7] * len(names)] * len(names)})
    del result["f1_positive"], result["f1_negative"]
    return result


SPEED = {
    "balanced": "80.0% of the sum of the ranks' speeds in the run; lost: 10.0% imbalance, 4.0% communication, "
    "2.0% data, 1.0% checkpoints, 3.0% rest",
    "share of ideal": "70.0% of the sum of their speeds in bursts before and after",
}
TWO_CLASSES = {
    "predicted as": "negative  positive",
    "log loss": "0.250, uncalibrated 0.300 (temperature 1.50)",
    "positive above": "0.625",
    "  negative": "       5     1,234",
    "  positive": "      20       300",
}
THREE_CLASSES = {
    "macro-F1": "0.500",
    "F1 positive, negative": None,
    "positive above": None,
    "predicted as": "bad  fair  good",
    "  fair": "  7     7     7",
}
COST = "cost of the nodes"
SPOT = "$0.42, at most: spot nodes at their price on demand"


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (summary([QUICK, SLOW]), {"rows of each rank": "100 + 100", **SPEED}),
        (summary([QUICK]), {"time": "102.0 s: 2.0 loading, 98.0 training, 2.0 checkpoints", COST: None}),
        (
            summary([QUICK], model="both", search={"verdict": "--model both is taken"}),
            {"search": "--model both is taken"},
        ),
        (summary([QUICK]), TWO_CLASSES),
        (of_classes("bad", "fair", "good"), THREE_CLASSES),
        (of_classes("very positive", "a\x1b[2J", "b"), {"predicted as": "very pos..  a?[2J  b"}),
        (of_classes(*"abcde"), {"predicted as": "a  b  c  d  e"}),
        (of_classes(*"abcdef"), {"predicted as": None}),
        (
            summary([{}, {}], lost=None, share_of_ideal=None, balanced=None),
            dict.fromkeys(("time of the steps", "share of ideal", "balanced")),
        ),
        (summary([QUICK], nodes=[node("a", 1)], cost=0.416), {COST: "$0.42, on demand"}),
        (summary([QUICK], nodes=[node("a", 1, "spot")], cost=0.416, stopped=True), {COST: SPOT}),
        (summary([QUICK], nodes=[node("a", 1)], cost=None), {COST: None}),
    ],
)
def test_what_is_shown_of_a_result_and_what_is_not(result: dict[str, Any], shown: dict[str, str | None]) -> None:
    found = dict(told(result))
    assert {name: found.get(name) for name in shown} == shown


@pytest.fixture
def signals() -> Iterator[None]:
    """The command sets handlers for the whole process."""
    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def deployed(**outputs: str) -> Deployment:
    return Deployment(name="mine", topology="starter", session=boto3.Session(), outputs=outputs)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("outputs", "options", "most"),
    [
        ({}, [], None),
        ({}, ["--max-dollars", "3"], 3.0),
        ({"MaxDollars": "20.5"}, [], 20.5),
        ({"MaxDollars": "20.5"}, ["--max-dollars", "30"], 30.0),
        ({"MaxDollars": "no amount"}, ["--max-dollars", "30"], 30.0),
    ],
)
def test_a_run_may_cost_what_its_command_says_or_else_its_topology(
    outputs: dict[str, str], options: list[str], most: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[OnDeployment] = []
    monkeypatch.setattr(
        "bootstrap.training.train.train",
        lambda _source, _config, place, *_, **__: places.append(place) or summary([QUICK]),
    )
    monkeypatch.setattr("bootstrap.aws.deployment.find_deployment", lambda *_: deployed(DataBucket="data", **outputs))
    assert main(["train", "--deployment", "mine", "--region", "us-east-1", "--output", "out", "--json", *options]) == 0
    (place,) = places
    assert place.wishes.max_dollars == most


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("output", "options", "status", "said"),
    [
        (
            "20.0",
            ["--queue"],
            2,
            "max_dollars of the topology 'starter' is 20, which counts from the start of the nodes, so it does not go "
            "with --queue; leave --queue out when the run before it has ended",
        ),
        *((text, [], 1, "deploy again, or give --max-dollars") for text in ("many", "nan", "inf", "0", "-1", "")),
    ],
)
def test_a_limit_of_the_topology_is_never_passed_over(
    output: str,
    options: list[str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("bootstrap.aws.deployment.find_deployment", lambda *_: deployed(MaxDollars=output))
    asked = ["train", "--deployment", "mine", "--region", "us-east-1", "--output", "out", *options]
    assert main(asked) == status
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("result", "status"),
    [
        (summary([QUICK]), 0),
        (summary([QUICK], stopped=True, stopped_by="SIGINT"), 130),
        (summary([QUICK], stopped=True, stopped_by="SIGTERM"), 143),
        (summary([QUICK], stopped=True), 130),
    ],
)
@pytest.mark.parametrize("where", ["here", "on a deployment"])
def test_a_stopped_training_has_a_summary_and_the_status_of_its_signal(
    result: dict[str, Any], status: int, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bootstrap.training.train.train", lambda *_, **__: result)
    monkeypatch.setattr("bootstrap.training.places.managed.place_on", lambda *_, **__: None)
    monkeypatch.setattr("bootstrap.aws.deployment.find_deployment", lambda *_: deployed())
    place = ["--local", "--data", "d.h5"] if where == "here" else ["--deployment", "mine", "--region", "us-east-1"]
    assert main(["train", *place, "--output", "out", "--json"]) == status
    assert json.loads(capsys.readouterr().out) == result


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("options", "model", "fixed"),
    [
        (["--epochs", "3"], "auto", ("epochs",)),
        (["--model", "lstm", "--epochs", "3"], "lstm", ()),
        (["--preset", "reference"], "lstm", ()),
        (["--preset", "fasttext"], "fasttext", ()),
    ],
)
def test_a_model_is_searched_for_unless_it_or_a_preset_is_named(
    options: list[str], model: str, fixed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    configs: list[TrainConfig] = []
    monkeypatch.setattr(
        "bootstrap.training.train.train",
        lambda _source, config, *_, **__: configs.append(config) or summary([QUICK]),
    )
    assert main(["train", "--local", "--data", "d.h5", "--output", "out", "--json", *options]) == 0
    assert [(each.model, each.fixed) for each in configs] == [(model, fixed)]


@pytest.mark.usefixtures("signals")
def test_a_run_that_was_finished_before_is_reported_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("")
    (tmp_path / "summary.json").write_text('{"stopped": false}')
    asked = ["train", "--local", "--data", "d.h5", "--output", str(tmp_path)]
    assert main([*asked, "--resume"]) == 0
    assert "finished  before this command; to train anew, type --force instead of --resume" in capsys.readouterr().out
    assert main([*asked, "--resume", "--force"]) == 2
    assert "--resume continues a run, and --force begins a new one" in capsys.readouterr().err
