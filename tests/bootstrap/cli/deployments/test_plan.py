"""`shoal plan --rows` predicts time and cost of the work and compares topologies; `shoal catalog` lists types."""

import json

import pytest

from bootstrap.cli.deployments.plan import _read_size
from infra import catalog
from tests.bootstrap.cli.command import shoal_here

REFERENCE = ("--rows", "21300000", "--epochs", "10", "--raw-bytes", "92.45GB")


def printed(*arguments: str) -> str:
    done = shoal_here(*arguments, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_reference_work_has_thirteen_priced_choices() -> None:
    plan = json.loads(printed("plan", "--all", *REFERENCE, "--json"))
    here, *rented = plan["machines"]
    assert (here["name"], here["model"], here["dollars"]["middle"]) == ("this machine", "fasttext", 0.0)
    clusters = plan["topologies"]
    choices = [*rented, *clusters]
    assert len(choices) == 13
    prices, seconds = ([each[key]["middle"] for each in choices] for key in ("dollars", "seconds"))
    assert [each["cheapest"] for each in choices] == [price == min(prices) for price in prices]
    assert [each["fastest"] for each in choices] == [time == min(seconds) for time in seconds]
    assert [each["dollars"]["middle"] for each in clusters] == prices[len(rented) :] == sorted(prices[len(rented) :])
    assert not any(each["name"].startswith("reference") for each in clusters)
    text = printed("plan", "--all", *REFERENCE)
    assert text.index("this machine") < text.index("m7i.xlarge") < text.index("one-node") < text.index("h100-8")
    assert (text.count(" cheapest\n"), text.count(" fastest\n")) == (1, 1)


def test_times_of_a_small_job_are_in_minutes_and_seconds() -> None:
    text = printed("plan", "--all", "--rows", "200000", "--raw-bytes", "800MB", "--epochs", "5")
    assert "hours" not in text
    assert "0.0 (" not in text
    (here,) = [line for line in text.splitlines() if line.startswith("this machine")]
    assert " seconds (" in here
    assert " minutes (" in text


def test_the_catalog_lists_each_type_and_the_price_list() -> None:
    types, prices = (part.splitlines() for part in printed("catalog").split("\n\n"))
    assert len(types) == 2 + len(catalog.catalog().types)
    (old,) = (line for line in types if line.startswith("p3.8xlarge"))
    hardware = ["p3.8xlarge", "32", "244", "4", "x", "V100,", "16", "GiB", "7.0", "10", "12.24"]
    assert old.split() == [*hardware, *["since", "2025-12-20;", "use", "g6e.12xlarge"]]
    retired = [each for each in catalog.catalog().types.values() if each.retired]
    assert sum("; use " in line for line in types) == len(retired)
    assert f"prices of us-east-1, {catalog.prices('us-east-1').date}" in prices[0]


def test_a_region_without_prices_shows_hardware_and_how_to_fetch_prices() -> None:
    text = printed("catalog", "--region", "sa-east-1")
    assert "g5.xlarge" in text
    assert "`make prices REGION=sa-east-1` fetches" in text
    assert json.loads(printed("catalog", "--region", "sa-east-1", "--json"))["source"] == "none are known"


def test_the_catalog_can_be_filtered_and_printed_as_json() -> None:
    gpus = json.loads(printed("catalog", "--json", "--gpu"))["types"]
    assert {row["name"] for row in gpus} == {each.name for each in catalog.catalog().types.values() if each.gpu}
    (old,) = (row for row in gpus if row["name"] == "g3.4xlarge")
    assert (old["hourly"], old["retired"]["successor"]) == (1.14, "g5.xlarge")


@pytest.mark.parametrize(
    ("text", "size"), [("500", 500), ("1.5kB", 1_500), ("2 MB", 2e6), ("92.45GB", 92.45e9), ("3t", 3e12)]
)
def test_sizes_have_decimal_units(text, size) -> None:
    assert _read_size(text) == pytest.approx(size)
