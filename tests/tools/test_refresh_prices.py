"""Refreshing prices sends the right requests to AWS, interprets the responses, and changes a file only if needed."""

import datetime
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from common.errors import ShoalError
from infra import catalog
from infra.catalog import PriceList
from infra.topology_error import TopologyError
from shoal.aws import account
from tools import refresh_prices

NEWEST = catalog.prices("us-east-1")
TODAY = NEWEST.date + datetime.timedelta(days=19)
ZONE = "use1-az6"
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
    """Return a product as in AWS's price list. Several prices are those of consecutive tiers."""
    sku = "5G4TA8Z4MUKE6MJB"
    term = f"{sku}.JRTCKXETXF"
    dimensions = {
        f"{term}.{number}": {"beginRange": str(number * 51200), "pricePerUnit": {"USD": f"{price:.10f}"}}
        for number, price in enumerate(steps)
    }
    terms = {"OnDemand": {term: {"priceDimensions": dict(reversed(dimensions.items())), "sku": sku}}, "Reserved": {}}
    described = {"productFamily": "Compute Instance", "attributes": dict(attributes), "sku": sku}
    return json.dumps({"product": described, "serviceCode": "AmazonEC2", "terms": terms})


def machines(priced: Mapping[str, float]) -> list[str]:
    return [product({"instanceType": name, "usagetype": f"BoxUsage:{name}"}, price) for name, price in priced.items()]


class Aws:
    """Fake of AWS's price list and offerings that also checks the requests."""

    def __init__(self, region: str) -> None:
        self.region = region
        self.clients = {
            name: boto3.client(name, region_name=where, aws_access_key_id="x", aws_secret_access_key="x")
            for name, where in (("pricing", "us-east-1"), ("ec2", region))
        }
        self.stubs = {name: Stubber(client) for name, client in self.clients.items()}

    def sells(self, service: str, filters: Mapping[str, str], *pages: Iterable[str]) -> None:
        chosen = {"regionCode": self.region, **filters}
        terms = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in chosen.items()]
        for number, page in enumerate(pages):
            request: dict[str, Any] = {"ServiceCode": service, "Filters": terms}
            answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": list(page)}
            if number:
                request["NextToken"] = f"page {number}"
            if number + 1 < len(pages):
                answer["NextToken"] = f"page {number + 1}"
            self.stubs["pricing"].add_response("get_products", answer, request)

    def offers(self, names: Iterable[str]) -> None:
        kind = "availability-zone-id"
        offered = [{"InstanceType": name, "LocationType": kind, "Location": ZONE} for name in names]
        types = {"Name": "instance-type", "Values": list(catalog.catalog().types)}
        self.stubs["ec2"].add_response(
            "describe_instance_type_offerings",
            {"InstanceTypeOfferings": offered},
            {"LocationType": kind, "Filters": [types]},
        )

    def answers(
        self, *pages: Iterable[str], offered: Iterable[str], emr: Mapping[str, float], without: str = ""
    ) -> None:
        """Expect all requests of a refresh. `pages` are those of EC2; the price named `without` is missing."""
        self.sells("AmazonEC2", ASKED_OF_EC2, *pages)
        self.offers(offered)
        self.sells("ElasticMapReduce", {"softwareType": "EMR"}, machines(emr))
        jobs = ({"instanceName": f"ml.{name}", "component": "Training"} for name in NEWEST.sagemaker)
        trained = [product(job, price) for job, price in zip(jobs, NEWEST.sagemaker.values(), strict=True)]
        self.sells("AmazonSageMaker", {"component": "Training"}, trained)
        for service, filters, usage, steps in OTHERS:
            products = [product({"usagetype": f"{PREFIX[self.region]}{usage}"}, *steps)] if usage != without else []
            noise = product({"usagetype": f"USE1-IA{usage}"}, 99.0)
            self.sells(service, filters, [noise, *products])

    def get_credentials(self) -> object:
        return object()

    def client(self, name: str, *, region_name: str) -> Any:
        assert region_name == {"pricing": "us-east-1", "ec2": self.region}[name]
        return self.clients[name]

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Check that all expected requests are sent."""
        with self.stubs["pricing"], self.stubs["ec2"]:
            yield
        for stub in self.stubs.values():
            stub.assert_no_pending_responses()


@pytest.fixture
def folder(tmp_path) -> Path:
    shutil.copy(catalog.PRICES / "us-east-1.yaml", tmp_path)
    return tmp_path


def answered(
    region: str,
    *pages: Iterable[str],
    folder: Path,
    offered: Iterable[str],
    emr: Mapping[str, float] | None = None,
    without: str = "",
) -> PriceList:
    """Return the price list from these responses."""
    aws = Aws(region)
    aws.answers(*pages, offered=offered, emr=emr or {}, without=without)
    with aws.asked():
        return refresh_prices.fetch_prices(aws, region, today=TODAY, folder=folder)  # type: ignore[arg-type]


def changed(folder: Path, *, g5: float | None = None, emr: Mapping[str, float] | None = None) -> PriceList:
    """Return the newest list with another price for a g5.xlarge."""
    instances = NEWEST.instances if g5 is None else {**NEWEST.instances, "g5.xlarge": g5}
    return answered("us-east-1", machines(instances), folder=folder, offered=instances, emr=emr)


def test_a_new_price_is_valid_from_today_and_earlier_lists_stay_unchanged_with_their_comments(folder) -> None:
    path = folder / "us-east-1.yaml"
    before = path.read_text()
    listed = changed(folder, g5=0.9, emr=NEWEST.emr)
    assert (listed.other.interface_endpoint_hour, listed.other.nat_gateway_hour) == (0.011, 0.048)
    refresh_prices.append(listed, folder=folder)
    assert catalog.prices("us-east-1", folder=folder) == listed
    assert listed.zones["g5.xlarge"] == [ZONE]
    assert catalog.prices("us-east-1", folder=folder).hourly("g5.xlarge") == 0.9
    assert PriceList.lists("us-east-1", folder) == [NEWEST, listed]
    assert path.read_text().startswith(before)
    assert list(folder.iterdir()) == [path]


def test_a_region_without_a_list_gets_a_file(folder, messages) -> None:
    pages = machines({"m5.xlarge": 0.214})
    listed = answered("eu-west-1", pages, offered=["m5.xlarge"], emr={"m5.xlarge": 0.0535}, folder=folder)
    assert listed.source == "AWS Price List API"
    assert list(vars(listed.other).values()) == [steps[0] for *_, steps in OTHERS]
    refresh_prices.append(listed, folder=folder)
    made = catalog.prices("eu-west-1", folder=folder)
    assert (made.hourly("m5.xlarge"), made.emr_hourly("m5.xlarge")) == (0.214, 0.0535)
    assert (folder / "eu-west-1.yaml").read_text().startswith("# Prices of instance types in eu-west-1")
    messages.hide(TODAY, "TODAY")
    with messages.raises(TopologyError):
        made.hourly("p5.48xlarge")


def test_all_pages_are_read_and_other_products_are_ignored(folder) -> None:
    block = product({"instanceType": "p5.48xlarge", "usagetype": "BoxUsage:p5.48xlarge"}, 0.0)
    unknown = product({"instanceType": "x1.32xlarge", "usagetype": "BoxUsage:x1.32xlarge"}, 13.338)
    pages = [machines({"m5.xlarge": 0.2}), [block, unknown], machines({"p5.48xlarge": 60.0, "m5.xlarge": 0.1})]
    emr = {"m5.xlarge": 0.05, "p5.48xlarge": 0.27}
    listed = answered("eu-west-1", *pages, offered=emr, emr=emr, folder=folder)
    assert listed.instances == {"m5.xlarge": 0.2, "p5.48xlarge": 60.0}
    assert listed.emr == {"m5.xlarge": 0.05}


def test_a_type_that_is_priced_but_not_offered_is_dropped_and_a_retired_one_keeps_its_last_price(folder) -> None:
    pages, emr = machines({"m4.xlarge": 0.2, "m5.xlarge": 0.192}), {"m4.xlarge": 0.06, "m5.xlarge": 0.048}
    listed = answered("us-east-1", pages, offered=["m5.xlarge"], emr=emr, folder=folder)
    retired = {name for name, row in catalog.catalog().types.items() if row.retired}
    assert set(listed.instances) == {"m5.xlarge", *retired}
    assert listed.hourly("p2.xlarge") == 0.90
    assert "m4.xlarge" not in listed.emr


def test_a_second_list_of_a_day_replaces_the_first(folder) -> None:
    for price in (0.9, 0.8):
        refresh_prices.append(changed(folder, g5=price), folder=folder)
    lists = PriceList.lists("us-east-1", folder)
    assert [each.date for each in lists].count(TODAY) == 1
    assert lists[-1].hourly("g5.xlarge") == 0.8


def test_a_missing_price_is_unknown(folder) -> None:
    pages = machines({"m5.xlarge": 0.2})
    listed = answered("us-east-1", pages, offered=["m5.xlarge"], folder=folder, without="NatGateway-Hours")
    refresh_prices.append(listed, folder=folder)
    assert catalog.prices("us-east-1", folder=folder).other.nat_gateway_hour is None


@pytest.mark.parametrize(
    "answer",
    [None, "no JSON", '{"product": {}}', '{"terms": {"OnDemand": {"a": {}}}}'],
    ids=["no type", "no JSON", "no terms", "no price"],
)
def test_an_unknown_response_is_reported_in_one_message(answer, folder, messages) -> None:
    aws = Aws("eu-west-1")
    aws.sells("AmazonEC2", ASKED_OF_EC2, [answer] if answer else [])
    if answer is None:
        aws.offers([])
    with aws.asked(), messages.raises(ShoalError):
        refresh_prices.fetch_prices(aws, "eu-west-1", today=TODAY, folder=folder)  # type: ignore[arg-type]


def test_an_unwritable_file_is_reported_in_one_message(folder, messages) -> None:
    with messages.raises(ShoalError):
        refresh_prices.append(NEWEST, folder=folder / "none")


@pytest.fixture
def refresh(folder, monkeypatch) -> Callable[[Aws], int]:
    """Function that runs the program on a copy of the lists, with these answers of AWS; it returns the exit status."""
    monkeypatch.setattr(catalog, "PRICES", folder)

    def run(aws: Aws) -> int:
        monkeypatch.setattr(account, "connect", lambda: aws)
        with aws.asked():
            return refresh_prices.main([])

    return run


def test_a_refresh_writes_changes_and_a_second_one_nothing(refresh, folder, capsys, messages) -> None:
    written = []
    for _ in range(2):
        aws = Aws("us-east-1")
        instances = {**NEWEST.instances, "g5.xlarge": 0.9}
        emr = catalog.prices("us-east-1", folder=folder).emr
        aws.answers(machines(instances), offered=instances, emr=emr)
        assert refresh(aws) == 0
        messages.hide(catalog.prices("us-east-1", folder=folder).date, "TODAY")
        messages.check(capsys.readouterr().err.splitlines()[-1])
        written.append((folder / "us-east-1.yaml").read_bytes())
    assert catalog.prices("us-east-1", folder=folder).hourly("g5.xlarge") == 0.9
    assert written[0] == written[1]


def test_a_refusal_of_aws_is_reported_and_nothing_is_written(refresh, folder, capsys, messages) -> None:
    before = (folder / "us-east-1.yaml").read_bytes()
    aws = Aws("us-east-1")
    aws.stubs["pricing"].add_client_error("get_products", "AccessDeniedException", "not yours", 400)
    assert refresh(aws) == 1
    messages.check(capsys.readouterr().err.splitlines()[-1])
    assert (folder / "us-east-1.yaml").read_bytes() == before


EMULATOR = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}


@pytest.mark.parametrize("environment", [{}, EMULATOR], ids=["nothing", "emulator"])
def test_a_refresh_without_credentials_fails_with_a_message(environment, monkeypatch, capsys, messages) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**NO_CREDENTIALS, **environment}.items():
        monkeypatch.setenv(name, value)
    assert refresh_prices.main([]) == 1
    messages.check(capsys.readouterr().err.rstrip())
