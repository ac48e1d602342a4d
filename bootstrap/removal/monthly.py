"""What a resource costs a month as long as it is left, at the list prices of its region.

Prices that the region's list (infra/prices) lacks are those of us-east-1 in November 2026, from AWS's pages on pricing
of EBS, RDS, ELB, KMS, Secrets Manager, CloudWatch, DynamoDB and ECR; a price that depends on more than the list of a
service tells is not known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.removal.sweep import FoundResource
from infra import catalog
from infra.catalog import PriceList
from infra.cost import known

HOURS = 730
_GIB = 2**30
_PAGES = 10
_VOLUMES = {"gp2": 0.10, "io1": 0.125, "io2": 0.125, "st1": 0.045, "sc1": 0.015, "standard": 0.05}
_SNAPSHOT_GIB, _RDS_GIB, _RDS_SNAPSHOT_GIB, _LOG_GIB, _TABLE_GIB, _IMAGE_GIB = 0.05, 0.115, 0.095, 0.03, 0.25, 0.10
_SECRET, _KEY, _ALARM, _DASHBOARD = 0.40, 1.00, 0.10, 3.00
_BALANCER_HOUR = {"application": 0.0225, "network": 0.0225, "gateway": 0.0125}


@dataclass(frozen=True, kw_only=True)
class Monthly:
    """Dollars a month; None where they are not known. `bound` is `at least` or `at most` where they are no more."""

    dollars: float | None
    bound: str = ""
    of: str = ""
    """What the price is of, or why it is not known."""


_CLUSTER_ENGINES = ("aurora", "docdb", "neptune")
"""Of RDS, which tell no size: their storage grows by itself."""
_Price = Callable[[ResourceRecord, PriceList], Monthly]
_FREE = Monthly(dollars=0.0)


def _by_size(price: float | None, key: str, bound: str = "", unit: float = 1.0) -> _Price:
    """Dollars a GiB and month, by a size in the record; `unit` is how many of its units are a GiB."""

    def priced(record: ResourceRecord, _prices: PriceList) -> Monthly:
        size = record.get(key)
        if size is None or price is None:
            return Monthly(dollars=None, of="its size is not told")
        return Monthly(dollars=price * size / unit, bound=bound, of=f"{size / unit:.3g} GiB")

    return priced


def _flat(dollars: float) -> _Price:
    return lambda _record, _prices: Monthly(dollars=dollars)


def _hourly(dollars: float | None, of: str = "") -> Monthly:
    return Monthly(dollars=None if dollars is None else dollars * HOURS, of=of)


def _volume(record: ResourceRecord, prices: PriceList) -> Monthly:
    kind, gib = str(record.get("VolumeType", "gp2")), record["Size"]
    price = prices.other.gp3_gib_month if kind == "gp3" else _VOLUMES.get(kind)
    dollars = None if price is None else price * gib
    return Monthly(
        dollars=dollars, bound="at least" if kind in ("io1", "io2", "gp3") else "", of=f"{gib} GiB of {kind}"
    )


def _instance(record: ResourceRecord, prices: PriceList) -> Monthly:
    kind = str(record["InstanceType"])
    if record.get("State", {}).get("Name") == "stopped":
        return Monthly(dollars=0.0, of=f"{kind}, stopped: its volumes cost")
    return _hourly(known(prices.hourly, kind), kind)


def _database(record: ResourceRecord, _prices: PriceList) -> Monthly:
    gib = record.get("AllocatedStorage") or 0
    return Monthly(
        dollars=_RDS_GIB * gib, bound="at least", of=f"{gib} GiB; {record.get('DBInstanceClass')} has no price"
    )


def _rds_snapshot(record: ResourceRecord, prices: PriceList) -> Monthly:
    if str(record.get("Engine", "")).startswith(_CLUSTER_ENGINES):
        return Monthly(dollars=None, of="its size is not told")
    return _by_size(_RDS_SNAPSHOT_GIB, "AllocatedStorage", "at most")(record, prices)


def _endpoint(record: ResourceRecord, prices: PriceList) -> Monthly:
    if record.get("VpcEndpointType") == "Gateway":
        return _FREE
    price, zones = prices.other.interface_endpoint_hour, len(record.get("SubnetIds") or ()) or 1
    return _hourly(None if price is None else price * zones, f"in {zones} subnets" if zones > 1 else "")


def _balancer(record: ResourceRecord, _prices: PriceList) -> Monthly:
    kind = str(record.get("Type", "application"))
    price = _BALANCER_HOUR.get(kind)
    return Monthly(
        dollars=None if price is None else price * HOURS, bound="at least", of=f"{kind}, without its traffic"
    )


def _file_system(record: ResourceRecord, prices: PriceList) -> Monthly:
    price, size = prices.other.efs_gib_month, record.get("SizeInBytes", {}).get("Value")
    if price is None or size is None:
        return Monthly(dollars=None, of="its size is not told")
    return Monthly(dollars=price * size / _GIB, of=f"{size / _GIB:.3g} GiB")


_PRICES: Mapping[str, _Price] = {
    "instance": _instance,
    "volume": _volume,
    "snapshot": _by_size(_SNAPSHOT_GIB, "VolumeSize", "at most"),
    "elastic ip": lambda _, prices: _hourly(prices.other.public_ipv4_hour),
    "nat gateway": lambda _, prices: _hourly(prices.other.nat_gateway_hour, "without its traffic"),
    "vpc endpoint": _endpoint,
    "load balancer": _balancer,
    "auto scaling group": lambda _, __: Monthly(dollars=0.0, of="its instances cost"),
    "efs file system": _file_system,
    "rds instance": _database,
    "rds snapshot": _rds_snapshot,
    "rds cluster snapshot": _rds_snapshot,
    "log group": _by_size(_LOG_GIB, "storedBytes", unit=_GIB),
    "secret": _flat(_SECRET),
    "kms key": _flat(_KEY),
    "cloudwatch alarm": _flat(_ALARM),
    "cloudwatch dashboard": _flat(_DASHBOARD),
}


def price_of(account: Account, thing: FoundResource) -> Monthly:
    """What it costs a month; a bucket, a table and a repository are asked for their size."""
    if not thing.billed:
        return _FREE
    prices = catalog.prices(account.region)
    try:
        if thing.kind in _MEASURED:
            return _MEASURED[thing.kind](account, thing.identifier, prices)
    except (BotoCoreError, ClientError):
        return Monthly(dollars=None, of="its size cannot be read")
    priced = _PRICES.get(thing.kind)
    return priced(thing.record, prices) if priced and thing.record else Monthly(dollars=None, of="by use")


def _bucket(account: Account, name: str, prices: PriceList) -> Monthly:
    """By all versions of its first ten thousand objects."""
    pages = account.pages("s3", "list_object_versions", Bucket=name)
    size = sum(each["Size"] for page in islice(pages, _PAGES) for each in page.get("Versions", ()))
    more, price = next(iter(pages), None) is not None, prices.other.s3_gib_month
    dollars = None if price is None else price * size / _GIB
    return Monthly(dollars=dollars, bound="at least" if more else "", of=f"{size / _GIB:.3g} GiB, all versions")


def _table(account: Account, name: str, _prices: PriceList) -> Monthly:
    size = account.client("dynamodb").describe_table(TableName=name)["Table"].get("TableSizeBytes", 0)
    return Monthly(
        dollars=_TABLE_GIB * size / _GIB, bound="at least", of=f"{size / _GIB:.3g} GiB, without its capacity"
    )


def _repository(account: Account, name: str, _prices: PriceList) -> Monthly:
    images = account.items("ecr", "describe_images", "imageDetails", repositoryName=name)
    size = sum(each.get("imageSizeInBytes", 0) for each in images)
    return Monthly(dollars=_IMAGE_GIB * size / _GIB, bound="at most", of=f"{size / _GIB:.3g} GiB")


_MEASURED: Mapping[str, Callable[[Account, str, PriceList], Monthly]] = {
    "s3 bucket": _bucket,
    "dynamodb table": _table,
    "ecr repository": _repository,
}
