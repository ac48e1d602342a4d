"""Reads the price lists of `prices/`: what machines and services cost in a region, by date.

A list may lack a price: AWS does not offer the type there, or nobody asked.
"""

import datetime
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

PRICES = Path(__file__).with_name("prices")
"""The price lists, one file for each region."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Dollars for what is not an instance; None where that is not known."""

    interface_endpoint_hour: float | None = None
    nat_gateway_hour: float | None = None
    nat_gib: float | None = None
    """What passes the gateway."""
    public_ipv4_hour: float | None = None
    gp3_gib_month: float | None = None
    efs_gib_month: float | None = None
    efs_read_gib: float | None = None
    """Elastic throughput, as `efs_write_gib`."""
    efs_write_gib: float | None = None
    s3_gib_month: float | None = None


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """The prices of a region from a date on: dollars an hour, on demand, Linux."""

    region: str
    date: datetime.date
    source: str
    instances: Mapping[str, float]
    emr: Mapping[str, float] = field(default_factory=dict)
    """What EMR adds."""
    sagemaker: Mapping[str, float] = field(default_factory=dict)
    """What SageMaker takes for training on a type, in place of `instances`."""
    other: Prices = Prices()
    zones: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ids of the zones that offer a type; empty: not known."""

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
                raise TypeError(f"{each!r} are not the ids of zones")

    @classmethod
    def lists(cls, region: str, folder: Path = PRICES) -> list[Self]:
        """All lists of a region, from the oldest to the newest; none when it has no file.

        Raises ValueError with a sentence that names a file that does not hold lists.
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
            raise ValueError(f"{path} does not hold price lists ({reason}); restore it, or delete it.") from None

    @classmethod
    def newest(cls, region: str, folder: Path = PRICES) -> Self:
        """The newest list of a region; for a region without a file one without prices."""
        if lists := cls.lists(region, folder):
            return lists[-1]
        today = datetime.datetime.now(datetime.UTC).date()
        return cls(region=region, date=today, source="none are known", instances={})


@functools.cache
def _read(path: Path, _changed: int) -> list[Any]:
    """The documents of a file as it was at this time of change."""
    return list(yaml.safe_load_all(path.read_text("utf-8")))
