"""Reads the price lists in `prices/`: dated prices of instances and services in a region.

A price may be missing from a list, because AWS does not offer the instance type in the region or because the price was
never looked up.
"""

import datetime
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

PRICES = Path(__file__).with_name("prices")
"""Folder of the price lists, one file for each region."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices in dollars of everything except instances; None if unknown. A field's name ends with the unit."""

    interface_endpoint_hour: float | None = None
    nat_gateway_hour: float | None = None
    nat_gib: float | None = None
    """Price of data that a NAT gateway processes."""
    public_ipv4_hour: float | None = None
    gp3_gib_month: float | None = None
    efs_gib_month: float | None = None
    efs_read_gib: float | None = None
    """Price of reads in elastic throughput mode; `efs_write_gib` is the price of writes."""
    efs_write_gib: float | None = None
    s3_gib_month: float | None = None


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """Prices of a region, valid from `date`: dollars per hour, on demand, Linux."""

    region: str
    date: datetime.date
    source: str
    instances: Mapping[str, float]
    emr: Mapping[str, float] = field(default_factory=dict)
    """Surcharge of EMR by instance type. Add it to the price in `instances`."""
    sagemaker: Mapping[str, float] = field(default_factory=dict)
    """Price of SageMaker training by instance type. It replaces the price in `instances`."""
    other: Prices = Prices()
    zones: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Ids of the availability zones that offer an instance type, by type. Missing if unknown."""

    def __post_init__(self) -> None:
        prices = [*self.instances.values(), *self.emr.values(), *self.sagemaker.values(), *vars(self.other).values()]
        for each in prices:
            if each is not None and (isinstance(each, bool) or not isinstance(each, int | float)):
                raise TypeError(f"{each!r} is not a price")
        if type(self.date) is not datetime.date:
            raise TypeError(f"{self.date!r} is not a date")
        if not isinstance(self.source, str):
            raise TypeError(f"{self.source!r} is not a source")
        for each in self.zones.values():
            if not isinstance(each, list | tuple) or not all(isinstance(zone, str) for zone in each):
                raise TypeError(f"{each!r} is not a list of zone ids")

    @classmethod
    def lists(cls, region: str, folder: Path = PRICES) -> list[Self]:
        """Return all price lists of a region, the oldest first. The result is empty for a region without a file.

        Raises ValueError for a broken file. The message names the file.
        """
        path = folder / f"{region}.yaml"
        if not path.exists():
            return []
        try:
            documents = _read(path, path.stat().st_mtime_ns)
            found = [cls(region=region, **{**each, "other": Prices(**each.get("other", {}))}) for each in documents]
            return sorted(found, key=lambda each: each.date)
        except (ValueError, yaml.YAMLError, TypeError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"{path} does not contain price lists ({reason}); restore it, or delete it.") from None

    @classmethod
    def newest(cls, region: str, folder: Path = PRICES) -> Self:
        """Return the newest price list of a region. For a region without a file the list has no prices."""
        if lists := cls.lists(region, folder):
            return lists[-1]
        today = datetime.datetime.now(datetime.UTC).date()
        return cls(region=region, date=today, source="none are known", instances={})


@functools.cache
def _read(path: Path, _changed: int) -> list[Any]:
    """Return the YAML documents of a file. The result is cached until the modification time `_changed` differs."""
    return list(yaml.safe_load_all(path.read_text("utf-8")))
