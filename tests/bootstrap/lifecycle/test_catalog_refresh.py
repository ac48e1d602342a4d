"""Renewing prices: what is asked of AWS, what is made of its answers, and that a file changes only when it should."""

import datetime
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

import bootstrap.cli.catalog  # noqa: F401  (annotations name the Session that is replaced here)
from bootstrap.cli.main import main
from bootstrap.errors import ShoalError
from bootstrap.lifecycle import catalog_refresh
from infra import catalog
from infra.errors import TopologyError

NEWEST = catalog.prices("us-east-1")
TODAY = NEWEST.date + datetime.timedelta(days=19)
PREFIX = {"us-east-1": "", "eu-west-1": "EU-"}
NO_CREDENTIALS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}

ASKED_OF_EC2 = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
OTHERS = [
    ("AmazonVPC", {}, "VpcEndpoint-Hours", [0.011]),
    ("AmazonEC2", {"group": "NGW:NatGateway"}, "NatGateway-Hours", [0.048]),
    ("AmazonEC2", {"group": "NGW:NatGateway"}, "NatGateway-Bytes", [0.049]),
    ("AmazonVPC", {}, "PublicIPv4:InUseAddress", [0.005]),
    ("AmazonEC2", {"volumeApiName": "gp3"}, "EBS:VolumeUsage.gp3", [0.088]),
    ("AmazonEFS", {"storageClass": "General Purpose"}, "TimedStorage-ByteHrs", [0.33]),
    ("AmazonEFS", {"accessType": "Read"}, "ETDataAccess-Bytes", [0.033]),
    ("AmazonEFS", {"accessType": "Write"}, "ETDataAccess-Bytes", [0.066]),
    ("AmazonS3", {"volumeType": "Standard"}, "TimedStorage-ByteHrs", [0.023, 0.022]),
]


def product(attributes: Mapping[str, str], *steps: float) -> str:
    """A product as AWS's price list has it; several prices are those of the first units, the next, and so on."""
    sku = "5G4TA8Z4MUKE6MJB"
    term = f"{sku}.JRTCKXETXF"
    dimensions = {
        f"{term}.{number}": {
            "unit": "Hrs",
            "beginRange": str(number * 51200),
            "endRange": "Inf",
            "description": "",
            "appliesTo": [],
            "rateCode": f"{term}.{number}",
            "pricePerUnit": {"USD": f"{price:.10f}"},
        }
        for number, price in enumerate(steps)
    }
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "attributes": dict(attributes), "sku": sku},
            "serviceCode": "AmazonEC2",
            "terms": {
                "OnDemand": {
                    term: {
                        "priceDimensions": dict(reversed(dimensions.items())),
                        "sku": sku,
                        "effectiveDate": "2026-11-01T00:00:00Z",
                        "offerTermCode": "JRTCKXETXF",
                        "termAttributes": {},
                    }
                },
                "Reserved": {},
            },
            "version": "20261110195514",
            "publicationDate": "2026-11-10T19:55:14Z",
        }
    )


def machines(priced: Mapping[str, float]) -> list[str]:
    return [product({"instanceType": name, "usagetype": f"BoxUsage:{name}"}, price) for name, price in priced.items()]


class Aws:
    """Answers as AWS does, and checks that it was asked for exactly this."""

    def __init__(self, region: str) -> None:
        self.region = region
        self._pricing, self._ec2 = (
            boto3.client(name, region_name=where, aws_access_key_id="x", aws_secret_access_key="x")
            for name, where in (("pricing", "us-east-1"), ("ec2", region))
        )
        self._stubs = [Stubber(self._pricing), Stubber(self._ec2)]

    def __enter__(self) -> "Aws":
        for stub in self._stubs:
            stub.activate()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            for stub in self._stubs:
                stub.assert_no_pending_responses()

    def sells(self, service: str, filters: Mapping[str, str], *pages: Sequence[str]) -> None:
        wanted = [
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in {"regionCode": self.region, **filters}.items()
        ]
        for number, page in enumerate(pages):
            asked: dict[str, Any] = {"ServiceCode": service, "Filters": wanted}
            answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": list(page)}
            if number:
                asked["NextToken"] = f"page {number}"
            if number + 1 < len(pages):
                answer["NextToken"] = f"page {number + 1}"
            self._stubs[0].add_response("get_products", answer, asked)

    def offers(self, names: Sequence[str]) -> None:
        offered = [{"InstanceType": name, "LocationType": "region", "Location": self.region} for name in names]
        self._stubs[1].add_response(
            "describe_instance_type_offerings",
            {"InstanceTypeOfferings": offered},
            {"LocationType": "region", "Filters": [{"Name": "instance-type", "Values": list(catalog.catalog().types)}]},
        )

    def refuses_prices(self) -> None:
        self._stubs[0].add_client_error("get_products", "AccessDeniedException", "not yours", 400)

    def sells_the_rest(self, *, without: str = "") -> None:
        for service, filters, usage, steps in OTHERS:
            found = [product({"usagetype": f"{PREFIX[self.region]}{usage}"}, *steps)] if usage != without else []
            noise = product({"usagetype": f"USE1-IA{usage}"}, 99.0)
            self.sells(service, filters, [noise, *found])

    def get_credentials(self) -> object:
        return object()

    def client(self, name: str, *, region_name: str) -> Any:
        assert region_name == {"pricing": "us-east-1", "ec2": self.region}[name]
        return {"pricing": self._pricing, "ec2": self._ec2}[name]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    shutil.copy(catalog.PRICES / "us-east-1.yaml", tmp_path)
    yield tmp_path
    catalog.price_lists.cache_clear()


def answered(
    region: str, instances: Mapping[str, float], emr: Mapping[str, float], *, folder: Path, without: str = ""
) -> catalog_refresh.Refreshed:
    """What is made of these answers, all of the types being offered."""
    with Aws(region) as aws:
        aws.sells("AmazonEC2", ASKED_OF_EC2, machines(instances))
        aws.offers(list(instances))
        aws.sells("ElasticMapReduce", {"softwareType": "EMR"}, machines(emr))
        aws.sells_the_rest(without=without)
        return catalog_refresh.ask_aws(aws, region, today=TODAY, folder=folder)  # type: ignore[arg-type]


def same(**different: float) -> dict[str, float]:
    """The prices of the newest list, but for these (`g5_xlarge` is g5.xlarge)."""
    changed = {name.replace("_", "."): price for name, price in different.items()}
    return {**NEWEST.instances, **changed}


def test_a_new_price_is_seen_and_written_and_valid_from_today(folder: Path) -> None:
    emr = NEWEST.emr
    found = answered("us-east-1", same(g5_xlarge=0.9), emr, folder=folder)
    machine, *others = found.changes
    assert machine == catalog_refresh.PriceChange(item="g5.xlarge", before=NEWEST.hourly("g5.xlarge"), after=0.9)
    assert [(each.item, each.before, each.after) for each in others][:2] == [
        ("interface_endpoint_hour", NEWEST.other.interface_endpoint_hour, 0.011),
        ("nat_gateway_hour", NEWEST.other.nat_gateway_hour, 0.048),
    ]
    catalog_refresh.append(found.today, folder=folder)
    assert catalog.prices("us-east-1", folder=folder) == found.today
    assert catalog.prices("us-east-1", folder=folder).hourly("g5.xlarge") == 0.9
    before = catalog.prices("us-east-1", on=TODAY - datetime.timedelta(days=1), folder=folder)
    assert before == NEWEST


def test_what_was_written_before_stays_as_it_was_with_its_comments(folder: Path) -> None:
    path = folder / "us-east-1.yaml"
    before = path.read_text()
    catalog_refresh.append(answered("us-east-1", same(), {}, folder=folder).today, folder=folder)
    assert path.read_text().startswith(before)
    assert len(catalog.price_lists("us-east-1", folder)) == len(catalog.price_lists("us-east-1")) + 1
    assert list(folder.iterdir()) == [path]


def test_a_second_list_of_a_day_replaces_the_first(folder: Path) -> None:
    for price in (0.9, 0.8):
        catalog_refresh.append(answered("us-east-1", same(g5_xlarge=price), {}, folder=folder).today, folder=folder)
    lists = catalog.price_lists("us-east-1", folder)
    assert [each.date for each in lists].count(TODAY) == 1
    assert lists[-1].hourly("g5.xlarge") == 0.8


def test_a_region_that_had_no_list_gets_a_file_of_its_own(folder: Path) -> None:
    found = answered("eu-west-1", {"m5.xlarge": 0.214}, {"m5.xlarge": 0.0535}, folder=folder)
    assert found.before is None
    assert found.kept == []
    assert list(found.today.other.model_dump().values()) == [steps[0] for *_, steps in OTHERS]
    catalog_refresh.append(found.today, folder=folder)
    made = catalog.prices("eu-west-1", folder=folder)
    assert (made.hourly("m5.xlarge"), made.emr_hourly("m5.xlarge")) == (0.214, 0.0535)
    assert (folder / "eu-west-1.yaml").read_text().startswith("# What machines cost in eu-west-1")
    with pytest.raises(TopologyError, match=rf"p5\.48xlarge has no price in the list of {TODAY} for eu-west-1"):
        made.hourly("p5.48xlarge")


def test_all_pages_are_read_and_other_products_of_a_type_are_left_out(folder: Path) -> None:
    block = product({"instanceType": "p5.48xlarge", "usagetype": "BoxUsage:p5.48xlarge"}, 0.0)
    unknown = product({"instanceType": "x1.32xlarge", "usagetype": "BoxUsage:x1.32xlarge"}, 13.338)
    with Aws("eu-west-1") as aws:
        aws.sells(
            "AmazonEC2", ASKED_OF_EC2, machines({"m5.xlarge": 0.2}), [block, unknown], machines({"p5.48xlarge": 60.0})
        )
        aws.offers(["m5.xlarge", "p5.48xlarge"])
        aws.sells("ElasticMapReduce", {"softwareType": "EMR"}, machines({"m5.xlarge": 0.05, "p5.48xlarge": 0.27}))
        aws.sells_the_rest()
        found = catalog_refresh.ask_aws(aws, "eu-west-1", today=TODAY, folder=folder)  # type: ignore[arg-type]
    assert found.today.instances == {"m5.xlarge": 0.2, "p5.48xlarge": 60.0}
    assert found.today.emr == {"m5.xlarge": 0.05}


def test_a_type_that_is_priced_but_not_offered_is_dropped_and_a_retired_one_keeps_its_last_price(folder: Path) -> None:
    with Aws("us-east-1") as aws:
        aws.sells("AmazonEC2", ASKED_OF_EC2, machines({"m4.xlarge": 0.2, "m5.xlarge": 0.192}))
        aws.offers(["m5.xlarge"])
        aws.sells("ElasticMapReduce", {"softwareType": "EMR"}, machines({"m4.xlarge": 0.06, "m5.xlarge": 0.048}))
        aws.sells_the_rest()
        found = catalog_refresh.ask_aws(aws, "us-east-1", today=TODAY, folder=folder)  # type: ignore[arg-type]
    retired = {name for name, row in catalog.catalog().types.items() if row.retired}
    assert set(found.today.instances) == {"m5.xlarge", *retired}
    assert found.today.hourly("p2.xlarge") == 0.90
    assert catalog_refresh.PriceChange(item="m4.xlarge", before=0.2, after=None) in found.changes
    assert catalog_refresh.PriceChange(item="EMR on m4.xlarge", before=0.06, after=None) in found.changes


def test_a_price_that_is_not_found_stays_and_the_list_says_so(folder: Path) -> None:
    found = answered("eu-west-1", {"m5.xlarge": 0.2}, {}, folder=folder, without="NatGateway-Hours")
    assert found.kept == ["nat_gateway_hour"]
    assert found.today.other.nat_gateway_hour == NEWEST.other.nat_gateway_hour
    assert found.today.source.endswith(f"kept from us-east-1, {NEWEST.date}: nat_gateway_hour")


def test_a_region_without_any_of_the_types_is_said(folder: Path) -> None:
    with Aws("eu-west-1") as aws:
        aws.sells("AmazonEC2", ASKED_OF_EC2, [])
        aws.offers([])
        with pytest.raises(ShoalError, match="AWS offers none of the catalogue's types in eu-west-1"):
            catalog_refresh.ask_aws(aws, "eu-west-1", today=TODAY, folder=folder)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["no JSON", '{"product": {}}', '{"terms": {"OnDemand": {"a": {}}}}'])
def test_an_answer_in_another_form_is_one_sentence(folder: Path, text: str) -> None:
    with Aws("us-east-1") as aws:
        aws.sells("AmazonEC2", ASKED_OF_EC2, [text])
        with pytest.raises(ShoalError, match="AWS's price list of AmazonEC2 has a form that Shoal does not know"):
            catalog_refresh.ask_aws(aws, "us-east-1", today=TODAY, folder=folder)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_written_is_one_sentence(folder: Path) -> None:
    with pytest.raises(ShoalError, match=r"cannot write .*us-east-1\.yaml: No such file or directory"):
        catalog_refresh.append(NEWEST, folder=folder / "none")


@pytest.fixture
def refresh(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `shoal catalog --refresh` on a copy of the lists, with AWS asking so much for a g5.xlarge."""
    monkeypatch.setattr(catalog, "PRICES", folder)

    def run(*options: str, price: float) -> tuple[dict[str, Any], str]:
        with Aws("us-east-1") as aws:
            aws.sells("AmazonEC2", ASKED_OF_EC2, machines(same(g5_xlarge=price)))
            aws.offers(list(same()))
            aws.sells(
                "ElasticMapReduce", {"softwareType": "EMR"}, machines(catalog.prices("us-east-1", folder=folder).emr)
            )
            aws.sells_the_rest()
            monkeypatch.setattr(boto3, "Session", lambda: aws)
            assert main(["catalog", "--refresh", "--json", *options]) == 0
        said = capsys.readouterr()
        return json.loads(said.out), said.err

    return run


def test_a_dry_run_shows_what_differs_and_writes_nothing(refresh: Any, folder: Path) -> None:
    before = (folder / "us-east-1.yaml").read_bytes()
    found, said = refresh("--dry-run", price=0.9)
    assert {"item": "g5.xlarge", "before": NEWEST.hourly("g5.xlarge"), "after": 0.9} in found["changes"]
    assert found["written"] is None
    assert "nothing was written (--dry-run)" in said
    assert (folder / "us-east-1.yaml").read_bytes() == before


def test_a_refresh_writes_what_differs_and_a_second_one_nothing(refresh: Any, folder: Path) -> None:
    found, said = refresh(price=0.9)
    assert found["written"] == str(folder / "us-east-1.yaml")
    assert f"prices differ from the list of {found['before']}" in said
    written = (folder / "us-east-1.yaml").read_bytes()
    again, said = refresh(price=0.9)
    assert (again["changes"], again["written"]) == ([], None)
    assert "is still right; nothing was written" in said
    assert (folder / "us-east-1.yaml").read_bytes() == written


def test_a_refusal_of_aws_is_one_sentence_and_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(catalog, "PRICES", folder)
    before = (folder / "us-east-1.yaml").read_bytes()
    with Aws("us-east-1") as aws:
        aws.refuses_prices()
        monkeypatch.setattr(boto3, "Session", lambda: aws)
        assert main(["catalog", "--refresh"]) == 1
    assert "AccessDeniedException" in capsys.readouterr().err
    assert (folder / "us-east-1.yaml").read_bytes() == before


def shoal(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    outside = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        ["shoal", *arguments],
        capture_output=True,
        text=True,
        env={**outside, **NO_CREDENTIALS, **environment},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "there are none; run `aws configure`"),
        (
            {
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
            },
            "http://127.0.0.1:4566 is an emulator, which has no prices; unset AWS_ENDPOINT_URL to ask AWS",
        ),
    ],
)
def test_without_aws_a_refresh_is_a_sentence(environment: dict[str, str], sentence: str) -> None:
    said = shoal("catalog", "--refresh", **environment)
    assert said.returncode == 1
    assert said.stderr.rstrip().endswith(sentence)
    assert "Traceback" not in said.stderr


def test_the_table_has_a_line_a_type_and_says_whose_prices_it_shows() -> None:
    said = shoal("catalog")
    types, gone = (part.splitlines() for part in said.stdout.split("\n\n"))
    assert len(types) == 1 + len(catalog.catalog().types)
    (found,) = (line for line in types if line.startswith("p3.8xlarge"))
    assert found.split() == ["p3.8xlarge", "32", "244", "4", "x", "V100,", "16", "GiB", "7.0", "12.24"]
    assert len(gone) == 1 + sum(each.retired is not None for each in catalog.catalog().types.values())
    (retired,) = (line for line in gone if line.startswith("p3.8xlarge"))
    assert retired.split() == ["p3.8xlarge", "2025-12-20", "g6e.12xlarge"]
    assert f"prices of us-east-1, {NEWEST.date}" in said.stderr


def test_the_table_can_be_of_one_kind_and_for_a_program() -> None:
    gpus, emr = (json.loads(shoal("catalog", "--json", kind).stdout)["types"] for kind in ("--gpu", "--emr"))
    assert all(row["gpu"] for row in gpus)
    assert all(row["emr_hourly"] for row in emr)
    assert {row["name"] for row in [*gpus, *emr]} == set(catalog.catalog().types)
    (found,) = (row for row in gpus if row["name"] == "g3.4xlarge")
    assert (found["hourly"], found["retired"]["successor"]) == (1.14, "g5.xlarge")


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--region", "us-est-1"], 2, "'us-est-1' is not an AWS region; did you mean "),
        (["--region", "eu-north-1"], 1, "there is no price list for eu-north-1, only for us-east-1"),
        (["--dry-run"], 2, "--dry-run goes with --refresh"),
        (["--gpu", "--emr"], 2, "not allowed with argument --gpu"),
    ],
)
def test_wrong_use_is_a_sentence(arguments: list[str], status: int, sentence: str) -> None:
    said = shoal("catalog", *arguments)
    assert said.returncode == status
    assert sentence in said.stderr
    assert "Traceback" not in said.stderr
