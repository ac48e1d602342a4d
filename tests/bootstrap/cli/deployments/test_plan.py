"""`shoal plan --rows`: predicted time and cost of the work, and the comparison of topologies."""

import json

import pytest

from bootstrap.cli.main import main

ROWS = ("--rows", "21300000", "--epochs", "10")
REFERENCE = (*ROWS, "--raw-bytes", "92.45GB")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["plan", *arguments]) == status
    return capsys.readouterr().out


def test_the_reference_work_has_thirteen_priced_choices(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "--all", *REFERENCE, "--json"))
    here, *rented = found["machines"]
    assert (here["name"], here["model"], here["dollars"]["middle"]) == ("this machine", "fasttext", 0.0)
    clusters = found["topologies"]
    choices = [*rented, *clusters]
    assert len(choices) == 13
    prices, seconds = ([each[key]["middle"] for each in choices] for key in ("dollars", "seconds"))
    assert [each["cheapest"] for each in choices] == [price == min(prices) for price in prices]
    assert [each["fastest"] for each in choices] == [time == min(seconds) for time in seconds]
    assert [each["dollars"]["middle"] for each in clusters] == prices[len(rented) :] == sorted(prices[len(rented) :])
    assert not any(each["name"].startswith("reference") for each in clusters)
    text = printed(capsys, "--all", *REFERENCE)
    assert text.index("this machine") < text.index("m7i.xlarge") < text.index("one-node") < text.index("h100-8")
    assert (text.count(" cheapest\n"), text.count(" fastest\n")) == (1, 1)


def test_times_of_a_small_job_are_in_minutes_and_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--all", "--rows", "200000", "--raw-bytes", "800MB", "--epochs", "5")
    assert "hours" not in text
    assert "0.0 (" not in text
    (here,) = [line for line in text.splitlines() if line.startswith("this machine")]
    assert " seconds (" in here
    assert " minutes (" in text
