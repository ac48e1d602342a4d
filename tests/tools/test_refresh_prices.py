"""Refreshing prices sends the right requests to AWS, interprets the responses, and changes a file only if needed."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bootstrap.aws import account
from common.errors import ShoalError
from infra import catalog
from infra.catalog import PriceList
from infra.topology_error import TopologyError
from tests.tools.pricing import ASKED_OF_EC2, NEWEST, NO_CREDENTIALS, OTHERS, TODAY, ZONE, Aws, machines, product, same
from tools import refresh_prices


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(catalog.PRICES / "us-east-1.yaml", tmp_path)
    return tmp_path


def answered(
    region: str, instances: Mapping[str, float], emr: Mapping[str, float], *, folder: Path, without: str = ""
) -> PriceList:
    """Return the price list from these responses; AWS offers all types."""
    with Aws(region) as aws:
        aws.sells("AmazonEC2", ASKED_OF_EC2, machines(instances))
        aws.offers(list(instances))
        aws.sells("ElasticMapReduce", {"softwareType": "EMR"}, machines(emr))
        aws.sells_the_rest(without=without)
        return refresh_prices.fetch_prices(aws, region, today=TODAY, folder=folder)  # type: ignore[arg-type]


def test_a_new_price_is_written_and_valid_from_today(folder: Path) -> None:
    emr = NEWEST.emr
    found = answered("us-east-1", same(g5_xlarge=0.9), emr, folder=folder)
    assert (found.other.interface_endpoint_hour, found.other.nat_gateway_hour) == (0.011, 0.048)
    refresh_prices.append(found, folder=folder)
    assert catalog.prices("us-east-1", folder=folder) == found
    assert found.zones["g5.xlarge"] == [ZONE]
    assert catalog.prices("us-east-1", folder=folder).hourly("g5.xlarge") == 0.9
    assert PriceList.lists("us-east-1", folder) == [NEWEST, found]


def test_earlier_lists_stay_unchanged_with_their_comments(folder: Path) -> None:
    path = folder / "us-east-1.yaml"
    before = path.read_text()
    refresh_prices.append(answered("us-east-1", same(), {}, folder=folder), folder=folder)
    assert path.read_text().startswith(before)
    assert len(PriceList.lists("us-east-1", folder)) == 2
    assert list(folder.iterdir()) == [path]


def test_a_region_without_a_list_gets_a_file(folder: Path) -> None:
    found = answered("eu-west-1", {"m5.xlarge": 0.214}, {"m5.xlarge": 0.0535}, folder=folder)
    assert found.source == "AWS Price List API"
    assert list(vars(found.other).values()) == [steps[0] for *_, steps in OTHERS]
    refresh_prices.append(found, folder=folder)
    made = catalog.prices("eu-west-1", folder=folder)
    assert (made.hourly("m5.xlarge"), made.emr_hourly("m5.xlarge")) == (0.214, 0.0535)
    assert (folder / "eu-west-1.yaml").read_text().startswith("# Prices of instance types in eu-west-1")
    with pytest.raises(TopologyError, match=rf"p5\.48xlarge has no price in the list of {TODAY} for eu-west-1"):
        made.hourly("p5.48xlarge")


def test_all_pages_are_read_and_other_products_are_ignored(folder: Path) -> None:
    block = product({"instanceType": "p5.48xlarge", "usagetype": "BoxUsage:p5.48xlarge"}, 0.0)
    unknown = product({"instanceType": "x1.32xlarge", "usagetype": "BoxUsage:x1.32xlarge"}, 13.338)
    with Aws("eu-west-1") as aws:
        aws.sells(
            "AmazonEC2", ASKED_OF_EC2, machines({"m5.xlarge": 0.2}), [block, unknown], machines({"p5.48xlarge": 60.0})
        )
        aws.offers(["m5.xlarge", "p5.48xlarge"])
        aws.sells("ElasticMapReduce", {"softwareType": "EMR"}, machines({"m5.xlarge": 0.05, "p5.48xlarge": 0.27}))
        aws.sells_the_rest()
        found = refresh_prices.fetch_prices(aws, "eu-west-1", today=TODAY, folder=folder)  # type: ignore[arg-type]
    assert found.instances == {"m5.xlarge": 0.2, "p5.48xlarge": 60.0}
    assert found.emr == {"m5.xlarge": 0.05}


def test_a_type_that_is_priced_but_not_offered_is_dropped_and_a_retired_one_keeps_its_last_price(folder: Path) -> None:
    with Aws("us-east-1") as aws:
        aws.sells("AmazonEC2", ASKED_OF_EC2, machines({"m4.xlarge": 0.2, "m5.xlarge": 0.192}))
        aws.offers(["m5.xlarge"])
        aws.sells("ElasticMapReduce", {"softwareType": "EMR"}, machines({"m4.xlarge": 0.06, "m5.xlarge": 0.048}))
        aws.sells_the_rest()
        found = refresh_prices.fetch_prices(aws, "us-east-1", today=TODAY, folder=folder)  # type: ignore[arg-type]
    retired = {name for name, row in catalog.catalog().types.items() if row.retired}
    assert set(found.instances) == {"m5.xlarge", *retired}
    assert found.hourly("p2.xlarge") == 0.90
    assert "m4.xlarge" not in found.emr


def test_a_second_list_of_a_day_replaces_the_first(folder: Path) -> None:
    for price in (0.9, 0.8):
        refresh_prices.append(answered("us-east-1", same(g5_xlarge=price), {}, folder=folder), folder=folder)
    lists = PriceList.lists("us-east-1", folder)
    assert [each.date for each in lists].count(TODAY) == 1
    assert lists[-1].hourly("g5.xlarge") == 0.8


@pytest.mark.parametrize(
    ("region", "kept", "price"),
    [("us-east-1", ["nat_gateway_hour"], NEWEST.other.nat_gateway_hour), ("eu-west-1", [], None)],
)
def test_a_missing_price_is_kept_from_the_last_list_and_named(
    region: str, kept: list[str], price: float | None, folder: Path
) -> None:
    found = answered(region, {"m5.xlarge": 0.2}, {}, folder=folder, without="NatGateway-Hours")
    assert found.source.endswith(f"; not listed there, and kept from {NEWEST.date}: nat_gateway_hour") == bool(kept)
    refresh_prices.append(found, folder=folder)
    assert catalog.prices(region, folder=folder).other.nat_gateway_hour == price


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([], "AWS offers none of the catalogue's types in eu-west-1"),
        *(
            ([text], "AWS's price list of AmazonEC2 has an unknown format")
            for text in ("no JSON", '{"product": {}}', '{"terms": {"OnDemand": {"a": {}}}}')
        ),
    ],
)
def test_an_unknown_response_is_reported_in_one_message(answer: list[str], sentence: str, folder: Path) -> None:
    with Aws("eu-west-1") as aws:
        aws.sells("AmazonEC2", ASKED_OF_EC2, answer)
        if not answer:
            aws.offers([])
        with pytest.raises(ShoalError, match=sentence):
            refresh_prices.fetch_prices(aws, "eu-west-1", today=TODAY, folder=folder)  # type: ignore[arg-type]


def test_an_unwritable_file_is_reported_in_one_message(folder: Path) -> None:
    with pytest.raises(ShoalError, match=r"cannot write .*us-east-1\.yaml: No such file or directory"):
        refresh_prices.append(NEWEST, folder=folder / "none")


@pytest.fixture
def refresh(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """Run the program on a copy of the lists, with this AWS price for a g5.xlarge; return its output."""
    monkeypatch.setattr(catalog, "PRICES", folder)

    def run(*options: str, price: float) -> tuple[str, str]:
        with Aws("us-east-1") as aws:
            aws.sells("AmazonEC2", ASKED_OF_EC2, machines(same(g5_xlarge=price)))
            aws.offers(list(same()))
            aws.sells(
                "ElasticMapReduce", {"softwareType": "EMR"}, machines(catalog.prices("us-east-1", folder=folder).emr)
            )
            aws.sells_the_rest()
            monkeypatch.setattr(account, "connect", lambda: aws)
            assert refresh_prices.main(options) == 0
        said = capsys.readouterr()
        return said.out, said.err

    return run


def test_a_refresh_writes_changes_and_a_second_one_nothing(
    refresh: Callable[..., tuple[str, str]], folder: Path
) -> None:
    _, said = refresh(price=0.9)
    assert f"written to {folder / 'us-east-1.yaml'}; `git diff` shows the changes" in " ".join(said.split())
    written = (folder / "us-east-1.yaml").read_bytes()
    assert catalog.prices("us-east-1", folder=folder).hourly("g5.xlarge") == 0.9
    _, said = refresh(price=0.9)
    assert "; nothing was written" in said
    assert (folder / "us-east-1.yaml").read_bytes() == written


def test_a_refusal_of_aws_is_reported_and_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(catalog, "PRICES", folder)
    before = (folder / "us-east-1.yaml").read_bytes()
    with Aws("us-east-1") as aws:
        aws.refuses_prices()
        monkeypatch.setattr(account, "connect", lambda: aws)
        assert refresh_prices.main([]) == 1
    assert "AccessDeniedException" in capsys.readouterr().err
    assert (folder / "us-east-1.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "prices need them; run `aws configure`"),
        (
            {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": "http://127.0.0.1:4566"},
            "http://127.0.0.1:4566 is an emulator, which has no prices; unset AWS_ENDPOINT_URL to ask AWS",
        ),
    ],
)
def test_a_refresh_without_credentials_fails_with_a_message(
    environment: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**NO_CREDENTIALS, **environment}.items():
        monkeypatch.setenv(name, value)
    assert refresh_prices.main([]) == 1
    assert capsys.readouterr().err.rstrip().endswith(sentence)
