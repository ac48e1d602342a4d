"""Monthly prices of leftover resources, at the list prices of their region: the field `cost` of `kinds.yaml`.

This module has the prices that are missing from `prices/`. They are prices of us-east-1 in November 2026, from AWS's
pricing pages of EBS, RDS, ELB, DynamoDB and ECR. A price is unknown if it depends on data that the service's list does
not include.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from shoal_guard.errors import SweepError
from shoal_guard.price_lists import PriceList
from shoal_guard.sweep.account import Account, ResourceRecord
from shoal_guard.sweep.kinds import KINDS
from shoal_guard.sweep.sweeping import FoundResource

HOURS = 730
_GIB = 2**30
_PAGES = 10
_VOLUMES = {"gp2": 0.10, "io1": 0.125, "io2": 0.125, "st1": 0.045, "sc1": 0.015, "standard": 0.05}
_RDS_GIB, _RDS_SNAPSHOT_GIB, _TABLE_GIB, _IMAGE_GIB = 0.115, 0.095, 0.25, 0.10
_BALANCER_HOUR = {"application": 0.0225, "network": 0.0225, "gateway": 0.0125}
_CLUSTER_ENGINES = ("aurora", "docdb", "neptune")
"""RDS engines that report no storage size, because their storage grows automatically."""


@dataclass(frozen=True, kw_only=True)
class MonthlyPrice:
    """Price of a resource in dollars per month; None if unknown.

    `bound` is `at least` or `at most` if the price is only a bound, and empty otherwise."""

    dollars: float | None
    bound: str = ""
    of: str = ""
    """Basis of the price, such as a size or an instance type, or the reason why the price is unknown."""


def price_of(account: Account, thing: FoundResource) -> MonthlyPrice:
    """Return the monthly price of a resource. For a bucket, a table or a repository this needs calls that read its
    size.

    Raises SweepError if the price list of the region is broken.
    """
    kind = KINDS.get(thing.kind)
    if not thing.billed or kind is None:
        return MonthlyPrice(dollars=0.0)
    cost = kind.cost
    try:
        prices = PriceList.newest(account.region)
    except ValueError as error:
        raise SweepError(str(error)) from None
    try:
        if measured := _MEASURED.get(str(cost)):
            return measured(account, thing.identifier, prices)
    except (BotoCoreError, ClientError):
        return MonthlyPrice(dollars=None, of="its size is unreadable")
    if not thing.record or cost == "use":
        return MonthlyPrice(dollars=None, of="by use")
    if isinstance(cost, Mapping):
        return _by_size(thing.record, cost)
    return _FUNCTIONS[cost](thing.record, prices) if isinstance(cost, str) else MonthlyPrice(dollars=cost)


def _by_size(record: ResourceRecord, cost: Mapping[str, Any]) -> MonthlyPrice:
    """Return the price for a size in the record. In `cost`, `gib` is dollars per GiB and month, and `unit` is the
    number of units of the size that make one GiB."""
    if (size := record.get(cost["size"])) is None:
        return MonthlyPrice(dollars=None, of="AWS reports no size")
    gib = size / cost.get("unit", 1)
    return MonthlyPrice(dollars=cost["gib"] * gib, bound=cost.get("bound", ""), of=f"{gib:.3g} GiB")


def _hourly(dollars: float | None, of: str = "", bound: str = "") -> MonthlyPrice:
    return MonthlyPrice(dollars=None if dollars is None else dollars * HOURS, of=of, bound=bound)


def _volume(record: ResourceRecord, prices: PriceList) -> MonthlyPrice:
    kind, gib = str(record.get("VolumeType", "gp2")), record["Size"]
    price = prices.other.gp3_gib_month if kind == "gp3" else _VOLUMES.get(kind)
    dollars = None if price is None else price * gib
    return MonthlyPrice(
        dollars=dollars, bound="at least" if kind in ("io1", "io2", "gp3") else "", of=f"{gib} GiB of {kind}"
    )


def _instance(record: ResourceRecord, prices: PriceList) -> MonthlyPrice:
    kind = str(record["InstanceType"])
    if record.get("State", {}).get("Name") == "stopped":
        return MonthlyPrice(dollars=0.0, of=f"{kind}, stopped; its volumes cost extra")
    return _hourly(prices.instances.get(kind), kind)


def _database(record: ResourceRecord, _prices: PriceList) -> MonthlyPrice:
    gib = record.get("AllocatedStorage") or 0
    return MonthlyPrice(
        dollars=_RDS_GIB * gib, bound="at least", of=f"{gib} GiB; {record.get('DBInstanceClass')} has no price"
    )


def _database_snapshot(record: ResourceRecord, _prices: PriceList) -> MonthlyPrice:
    if str(record.get("Engine", "")).startswith(_CLUSTER_ENGINES):
        return MonthlyPrice(dollars=None, of="AWS reports no size")
    return _by_size(record, {"gib": _RDS_SNAPSHOT_GIB, "size": "AllocatedStorage", "bound": "at most"})


def _endpoint(record: ResourceRecord, prices: PriceList) -> MonthlyPrice:
    price, zones = prices.other.interface_endpoint_hour, len(record.get("SubnetIds") or ()) or 1
    return _hourly(None if price is None else price * zones, f"in {zones} subnets" if zones > 1 else "")


def _balancer(record: ResourceRecord, _prices: PriceList) -> MonthlyPrice:
    kind = str(record.get("Type", "application"))
    return _hourly(_BALANCER_HOUR.get(kind), f"{kind}, without its traffic", "at least")


def _file_system(record: ResourceRecord, prices: PriceList) -> MonthlyPrice:
    price, size = prices.other.efs_gib_month, record.get("SizeInBytes", {})
    if price is None:
        return MonthlyPrice(dollars=None, of="AWS reports no size")
    return _by_size(size, {"gib": price, "size": "Value", "unit": _GIB})


_FUNCTIONS = {
    "instance": _instance,
    "volume": _volume,
    "address": lambda _, prices: _hourly(prices.other.public_ipv4_hour),
    "nat_gateway": lambda _, prices: _hourly(prices.other.nat_gateway_hour, "without its traffic"),
    "endpoint": _endpoint,
    "balancer": _balancer,
    "group": lambda _, __: MonthlyPrice(dollars=0.0, of="its instances cost"),
    "file_system": _file_system,
    "database": _database,
    "database_snapshot": _database_snapshot,
}


def _bucket(account: Account, name: str, prices: PriceList) -> MonthlyPrice:
    """Return the price of a bucket's object versions. Only the first 10,000 versions are counted."""
    pages = account.pages("s3", "list_object_versions", Bucket=name)
    size = sum(each["Size"] for page in islice(pages, _PAGES) for each in page.get("Versions", ()))
    more, price = next(iter(pages), None) is not None, prices.other.s3_gib_month
    dollars = None if price is None else price * size / _GIB
    return MonthlyPrice(dollars=dollars, bound="at least" if more else "", of=f"{size / _GIB:.3g} GiB, all versions")


def _table(account: Account, name: str, _prices: PriceList) -> MonthlyPrice:
    size = account.client("dynamodb").describe_table(TableName=name)["Table"].get("TableSizeBytes", 0)
    return MonthlyPrice(
        dollars=_TABLE_GIB * size / _GIB, bound="at least", of=f"{size / _GIB:.3g} GiB, without its capacity"
    )


def _repository(account: Account, name: str, _prices: PriceList) -> MonthlyPrice:
    images = account.items("ecr", "describe_images", "imageDetails", repositoryName=name)
    size = sum(each.get("imageSizeInBytes", 0) for each in images)
    return MonthlyPrice(dollars=_IMAGE_GIB * size / _GIB, bound="at most", of=f"{size / _GIB:.3g} GiB")


_MEASURED = {"bucket": _bucket, "table": _table, "repository": _repository}
