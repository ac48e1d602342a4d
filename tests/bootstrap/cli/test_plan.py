"""`shoal plan --rows`: what a topology takes and costs for a user's data, and which one to take."""

import json
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from tests.experiments.prediction.test_training import a_run

ROWS = ("--rows", "21300000", "--epochs", "10")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["plan", *arguments]) == status
    return capsys.readouterr().out


def test_it_predicts_each_stage_with_its_range_and_what_it_follows_from(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("mixed-g5-g4dn", "--offline", *ROWS, "--raw-bytes", "92.45GB")
    text = printed(capsys, *asked)
    for part in ("start the cluster", "preprocess", "the idle cluster", "copy the data", "train", "not measured"):
        assert part in text
    (plan,) = json.loads(printed(capsys, *asked, "--json"))["plans"]
    prediction = plan["prediction"]
    assert prediction["dollars"]["middle"] == pytest.approx(
        sum(stage["dollars"]["middle"] for stage in prediction["stages"]) + prediction["by_use"]
    )
    assert plan["price"] > prediction["dollars"]["middle"]


def test_of_all_topologies_those_that_fit_are_listed_the_cheapest_first(capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--max-price", "30", "--max-hours", "2")
    listed = json.loads(printed(capsys, "--all", *ROWS, *limits, "--json"))["topologies"]
    prices = [each["dollars"]["middle"] for each in listed]
    assert prices == sorted(prices)
    assert max(prices) <= 30
    assert max(each["seconds"]["middle"] for each in listed) <= 2 * 3600
    best = [each for each in listed if each["best"]]
    assert best[0] is listed[0]
    assert [each["seconds"]["middle"] for each in best] == sorted(each["seconds"]["middle"] for each in best)[::-1]
    assert not any(each["topology"].startswith("reference") for each in listed)
    assert "*" in printed(capsys, "--all", *ROWS)


def test_where_nothing_fits_it_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--all", *ROWS, "--max-price", "0.01", status=1)
    assert "The cheapest is" in text


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--all",), "--rows N"),
        (("--all", "starter", "--rows", "5"), "no topology"),
        (("--rows", "5"), "--all"),
        (("starter", "--raw-bytes", "5GB"), "--rows"),
        (("starter", "--max-price", "5"), "--all"),
        (("starter", "--rows", "5", "--raw-bytes", "many"), "92.45GB"),
        (("starter", "--rows", "0"), "--rows"),
    ],
)
def test_wrong_use_is_a_sentence(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], part: str) -> None:
    assert main(["plan", *arguments]) == 2
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1


def test_it_predicts_a_training_on_this_machine_by_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path / "rates" / "one", batch=64, rows=5_000)
    a_run(tmp_path / "rates" / "two", batch=512, rows=20_000)
    rates = ("--rates", str(tmp_path / "rates"))
    text = printed(capsys, "--local", "--rows", "50000", "--epochs", "3", *rates)
    assert "measured" in text
    small, large = (
        json.loads(printed(capsys, "--local", "--rows", rows, *rates, "--json"))["all"]["middle"]
        for rows in ("50000", "100000")
    )
    assert small < large < 2 * small
    for wrong in (("--local", "--rows", "5"), ("--rows", "5", *rates), ("starter", "--local", "--rows", "5", *rates)):
        assert main(["plan", *wrong]) == 2


def test_a_topology_without_a_cluster_cannot_preprocess(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "embeddings-1gpu", "--offline", "--rows", "5", "--raw-bytes", "1GB"]) == 1
    assert "has no cluster" in capsys.readouterr().err
