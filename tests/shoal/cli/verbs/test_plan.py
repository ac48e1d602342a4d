"""`shoal plan --rows` predicts time and cost of the work and compares topologies."""

import json

import pytest

from shoal.cli.verbs.plan import _read_size
from tests.shoal.cli.command import shoal_here

REFERENCE = ("--rows", "21300000", "--epochs", "10", "--raw-bytes", "92.45GB")


def printed(*arguments: str) -> str:
    done = shoal_here(*arguments, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("model", "number"), [("linear", 7), ("lstm", 12)])
def test_the_reference_work_has_priced_choices_for_each_model(model: str, number: int) -> None:
    plan = json.loads(printed("plan", "--all", "--model", model, *REFERENCE, "--json"))
    rented, clusters = [each for each in plan["machines"] if each["name"] != "this machine"], plan["topologies"]
    choices = [*rented, *clusters]
    assert {each["model"] for each in choices} == {model}
    assert len(choices) == number
    prices, seconds = ([each[key]["middle"] for each in choices] for key in ("dollars", "seconds"))
    assert [each["cheapest"] for each in choices] == [price == min(prices) for price in prices]
    assert [each["fastest"] for each in choices] == [time == min(seconds) for time in seconds]
    assert [each["dollars"]["middle"] for each in clusters] == prices[len(rented) :] == sorted(prices[len(rented) :])
    assert not any(each["name"].startswith("reference") for each in clusters)
    text = printed("plan", "--all", "--model", model, *REFERENCE)
    assert text.index(rented[0]["name"]) < text.index("one-node") < text.index("h100-8")
    assert (text.count(" cheapest\n"), text.count(" fastest\n")) == (1, 1)


def test_times_of_a_small_job_are_in_minutes_and_seconds() -> None:
    text = printed("plan", "--all", "--rows", "20000", "--raw-bytes", "80MB")
    assert "hours" not in text
    assert "0.0 (" not in text
    (here,) = [line for line in text.splitlines() if line.startswith("this machine")]
    assert " seconds (" in here
    assert " minutes (" in text


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), ("1.5kB", 1_500), ("2 MB", 2e6), ("92.45GB", 92.45e9), ("3t", 3e12)]
)
def test_sizes_have_decimal_units(text, size) -> None:
    assert _read_size(text) == pytest.approx(size)
