"""`make prices`: fetches today's prices from AWS, and appends them to a region's file as a list with today's date.

Keep all filters. For the same instance type, AWS also lists prices as a dedicated instance, as an unused reservation,
with Windows, and as a Capacity Block at zero dollars. Only all filters together select the price that a deployment
pays.
"""

import argparse
import datetime
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import yaml
from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ShoalError
from infra import caller, catalog
from infra.catalog import PriceList, Prices
from infra.managed_spec import PREFIX
from infra.parts import known_region
from infra.topology_error import TopologyError
from shoal.aws import account
from shoal.cli.aws_errors import sentence
from shoal.cli.output import print_error, say

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_pricing.type_defs import FilterTypeDef

_PRICING_REGION = "us-east-1"
"""Region of the API endpoint that has the prices of all regions."""

_MACHINE = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
_HEADER = """\
# Prices of instance types in {region} in dollars per hour, on demand, Linux. Each document is one list, the oldest
# first. A list is valid from its date until the date of the next list. `make prices REGION={region}` adds today's list.
"""


@dataclass(frozen=True, kw_only=True)
class _OtherPrice:
    """Query for the price of something other than an instance. In the price list, the prefix of a region can precede
    the usage type."""

    service: str
    filters: Mapping[str, str]
    usage: str


_OTHER_PRICES = {
    "interface_endpoint_hour": _OtherPrice(service="AmazonVPC", filters={}, usage="VpcEndpoint-Hours"),
    "nat_gateway_hour": _OtherPrice(service="AmazonEC2", filters={"group": "NGW:NatGateway"}, usage="NatGateway-Hours"),
    "nat_gib": _OtherPrice(service="AmazonEC2", filters={"group": "NGW:NatGateway"}, usage="NatGateway-Bytes"),
    "public_ipv4_hour": _OtherPrice(service="AmazonVPC", filters={}, usage="PublicIPv4:InUseAddress"),
    "gp3_gib_month": _OtherPrice(service="AmazonEC2", filters={"volumeApiName": "gp3"}, usage="EBS:VolumeUsage.gp3"),
    "efs_gib_month": _OtherPrice(
        service="AmazonEFS", filters={"storageClass": "General Purpose"}, usage="TimedStorage-ByteHrs"
    ),
    "efs_read_gib": _OtherPrice(service="AmazonEFS", filters={"accessType": "Read"}, usage="ETDataAccess-Bytes"),
    "efs_write_gib": _OtherPrice(service="AmazonEFS", filters={"accessType": "Write"}, usage="ETDataAccess-Bytes"),
    "s3_gib_month": _OtherPrice(service="AmazonS3", filters={"volumeType": "Standard"}, usage="TimedStorage-ByteHrs"),
}


def main(arguments: Sequence[str]) -> int:
    """Fetch the prices of a region, and write them if they changed. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.refresh_prices", description=__doc__.partition("\n")[0])
    parser.add_argument("--region", default=_PRICING_REGION, help="the region of the prices (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        known_region(options.region)
    except ValueError as error:
        parser.error(str(error))
    try:
        _refresh(options.region)
    except (ShoalError, TopologyError) as error:
        print_error(str(error))
        return 1
    except (BotoCoreError, ClientError) as error:
        print_error(sentence(error))
        return 1
    return 0


def _refresh(region: str) -> None:
    before = catalog.prices(region, catalog.PRICES)
    today = fetch_prices(
        account.connect(), region, today=datetime.datetime.now(datetime.UTC).date(), folder=catalog.PRICES
    )
    say(today.source)
    if before == today.model_copy(update={"date": before.date, "source": before.source}):
        say(f"the prices are the same as in the list of {before.date}; nothing was written")
    else:
        say(f"written to {append(today, folder=catalog.PRICES)}; `git diff` shows the changes")


def fetch_prices(session: boto3.Session, region: str, *, today: datetime.date, folder: Path) -> PriceList:
    """Fetch the prices of the catalogue's instance types in a region, and the zones that offer the types.

    If AWS does not list the price of a retired type, the last price is kept. Raises ShoalError without credentials, on
    an emulator, or if AWS offers none of the types in the region.
    """
    pricing, ec2 = _clients(session, region)
    before = catalog.prices(region, folder)
    types = catalog.catalog().types
    priced, zones = _by_type(pricing, "AmazonEC2", region, _MACHINE), _zones(ec2)
    instances = _instance_prices(priced=priced, offered=set(zones), last=before.instances)
    if not instances:
        raise ShoalError(f"AWS offers none of the catalogue's types in {region}; choose a different region")
    emr = _by_type(pricing, "ElasticMapReduce", region, {"softwareType": "EMR"})
    managed = _by_type(pricing, "AmazonSageMaker", region, {"component": "Training"})
    found = {name: _other_price(pricing, region, place) for name, place in _OTHER_PRICES.items()}
    return PriceList(
        region=region,
        date=today,
        source="AWS Price List API",
        other=Prices(**found),
        instances=instances,
        emr={name: emr[name] for name in instances if types[name].runs_emr and name in emr},
        sagemaker={name: managed[name] for name in instances if name in managed},
        zones={name: zones[name] for name in types if name in zones},
    )


def append(made: PriceList, *, folder: Path) -> Path:
    """Append a price list to the file of its region, and return the file. A list of the same day is replaced. The file
    is replaced atomically."""
    path = folder / f"{made.region}.yaml"
    part = path.with_suffix(".part")
    prices = {name: price for name, price in made.other.model_dump().items() if price is not None}
    document = yaml.safe_dump(
        {name: each for name, each in {**made.model_dump(), "other": prices}.items() if name != "region"},
        sort_keys=False,
    )
    try:
        text = path.read_text("utf-8") if path.exists() else _HEADER.format(region=made.region)
        head, *documents = re.split(r"^---\n", text, flags=re.MULTILINE)
        documents = [each for each in documents if yaml.safe_load(each)["date"] != made.date]
        part.write_text("---\n".join([head, *documents, document]), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ShoalError(f"cannot write {path}: {error.strerror}; the file is unchanged") from error
    return path


def _clients(session: boto3.Session, region: str) -> tuple["PricingClient", "EC2Client"]:
    if session.get_credentials() is None:
        raise ShoalError("no AWS credentials were found, and prices need them; run `aws configure`")
    pricing, ec2 = session.client("pricing", region_name=_PRICING_REGION), session.client("ec2", region_name=region)
    for client in (pricing, ec2):
        if caller.is_local(client.meta.endpoint_url):
            raise ShoalError(
                f"{client.meta.endpoint_url} is an emulator, which has no prices; unset AWS_ENDPOINT_URL to ask AWS"
            )
    return pricing, ec2


def _instance_prices(*, priced: Mapping[str, float], offered: Set[str], last: Mapping[str, float]) -> dict[str, float]:
    """Return the price of each offered type and the last price of each retired type, in the order of the catalogue."""
    found = {
        name: priced.get(name, last.get(name)) if row.retired else priced.get(name)
        for name, row in catalog.catalog().types.items()
        if row.retired or name in offered
    }
    return {name: price for name, price in found.items() if price is not None}


def _by_type(pricing: "PricingClient", service: str, region: str, filters: Mapping[str, str]) -> dict[str, float]:
    """Return the dollars per hour by instance type. If several products match, return the highest price."""
    found: dict[str, float] = {}
    for attributes, price in _products(pricing, service, region, filters):
        name = attributes.get("instanceName") or attributes.get("instanceType", "")
        name = name.removeprefix(PREFIX).removesuffix("-Training")
        if name in catalog.catalog().types and price > 0:
            found[name] = max(price, found.get(name, 0.0))
    return found


def _other_price(pricing: "PricingClient", region: str, place: _OtherPrice) -> float | None:
    usage = re.compile(rf"([A-Z0-9]+-)?{re.escape(place.usage)}")
    for attributes, price in _products(pricing, place.service, region, place.filters):
        if usage.fullmatch(attributes.get("usagetype", "")):
            return price
    return None


def _products(
    pricing: "PricingClient", service: str, region: str, filters: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, str], float]]:
    """Yield the attributes and the on-demand price of each product. If a price has several tiers, yield the price of
    the first tier."""
    conditions: list[FilterTypeDef] = [
        {"Type": "TERM_MATCH", "Field": field, "Value": value}
        for field, value in {"regionCode": region, **filters}.items()
    ]
    for page in pricing.get_paginator("get_products").paginate(ServiceCode=service, Filters=conditions):
        for text in page["PriceList"]:
            try:
                product = json.loads(text)
                price = _on_demand(product["terms"].get("OnDemand", {}))
                attributes = product["product"]["attributes"]
            except (KeyError, ValueError) as error:
                raise ShoalError(
                    f"AWS's price list of {service} has an unknown format ({error}); nothing was changed"
                ) from error
            if price is not None:
                yield attributes, price


def _on_demand(terms: Mapping[str, Any]) -> float | None:
    for term in terms.values():
        for dimension in term["priceDimensions"].values():
            if dimension["beginRange"] == "0" and "USD" in dimension["pricePerUnit"]:
                return float(dimension["pricePerUnit"]["USD"])
    return None


def _zones(ec2: "EC2Client") -> dict[str, list[str]]:
    """Return, for each type of the catalogue, the IDs of the zones that offer it. Types that no zone offers are left
    out."""
    pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone-id",
        Filters=[{"Name": "instance-type", "Values": list(catalog.catalog().types)}],
    )
    found = defaultdict(list)
    for offer in (each for page in pages for each in page["InstanceTypeOfferings"]):
        found[str(offer["InstanceType"])].append(offer["Location"])
    return {name: sorted(zones) for name, zones in found.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
