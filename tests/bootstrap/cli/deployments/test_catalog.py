"""`shoal catalog`: the table, its filter, and JSON."""

import json
from collections.abc import Callable

import pytest

from bootstrap.cli.main import main
from infra import catalog

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[str, str]:
        assert main(["catalog", *arguments]) == 0
        return capsys.readouterr()

    return run


def test_the_table_lists_each_type_and_the_price_list(printed: Run) -> None:
    shown, _ = printed()
    types, prices = (part.splitlines() for part in shown.split("\n\n"))
    assert len(types) == 2 + len(catalog.catalog().types)
    (found,) = (line for line in types if line.startswith("p3.8xlarge"))
    hardware = ["p3.8xlarge", "32", "244", "4", "x", "V100,", "16", "GiB", "7.0", "10", "12.24"]
    assert found.split() == [*hardware, *["since", "2025-12-20;", "use", "g6e.12xlarge"]]
    assert sum("; use " in line for line in types) == sum(
        each.retired is not None for each in catalog.catalog().types.values()
    )
    assert f"prices of us-east-1, {catalog.prices('us-east-1').date}" in prices[0]


def test_a_region_without_prices_shows_hardware_and_how_to_fetch_prices(printed: Run) -> None:
    shown, _ = printed("--region", "sa-east-1")
    assert "g5.xlarge" in shown
    assert "none are known; `make prices REGION=sa-east-1` fetches current prices, with AWS credentials" in shown
    assert json.loads(printed("--region", "sa-east-1", "--json")[0])["source"] == "none are known"


def test_the_table_can_be_filtered_and_printed_as_json(printed: Run) -> None:
    gpus = json.loads(printed("--json", "--gpu")[0])["types"]
    assert {row["name"] for row in gpus} == {each.name for each in catalog.catalog().types.values() if each.gpu}
    (found,) = (row for row in gpus if row["name"] == "g3.4xlarge")
    assert (found["hourly"], found["retired"]["successor"]) == (1.14, "g5.xlarge")
