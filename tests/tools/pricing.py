"""Emulates AWS's price list and offerings for `make prices`, with the content of the newest list."""

import datetime
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import boto3
from botocore.stub import Stubber

from infra import catalog

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
    """Fake of AWS that also checks the requests."""

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
        kind = "availability-zone-id"
        offered = [{"InstanceType": name, "LocationType": kind, "Location": ZONE} for name in names]
        self._stubs[1].add_response(
            "describe_instance_type_offerings",
            {"InstanceTypeOfferings": offered},
            {"LocationType": kind, "Filters": [{"Name": "instance-type", "Values": list(catalog.catalog().types)}]},
        )

    def refuses_prices(self) -> None:
        self._stubs[0].add_client_error("get_products", "AccessDeniedException", "not yours", 400)

    def sells_the_rest(self, *, without: str = "") -> None:
        trained = {name: price for name, price in NEWEST.sagemaker.items() if name != without}
        jobs = [product({"instanceName": f"ml.{name}", "component": "Training"}, trained[name]) for name in trained]
        self.sells("AmazonSageMaker", {"component": "Training"}, jobs)
        for service, filters, usage, steps in OTHERS:
            found = [product({"usagetype": f"{PREFIX[self.region]}{usage}"}, *steps)] if usage != without else []
            noise = product({"usagetype": f"USE1-IA{usage}"}, 99.0)
            self.sells(service, filters, [noise, *found])

    def get_credentials(self) -> object:
        return object()

    def client(self, name: str, *, region_name: str) -> Any:
        assert region_name == {"pricing": "us-east-1", "ec2": self.region}[name]
        return {"pricing": self._pricing, "ec2": self._ec2}[name]


def same(**different: float) -> dict[str, float]:
    """Return the prices of the newest list with these replaced (`g5_xlarge` is g5.xlarge)."""
    changed = {name.replace("_", "."): price for name, price in different.items()}
    return {**NEWEST.instances, **changed}
