"""Reads the catalogue of instance types (hardware and supported software) and the price lists by region and date.

CDK's enums and AWS's price lists still contain retired types. Only the field `retired` shows that AWS no longer starts
a type. A retired type keeps its last price, because the tables of the reference system use this price.
"""

import datetime
import difflib
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.checked_values import describe
from infra.topology_error import TopologyError

PRICES = Path(__file__).with_name("prices")
"""Folder of the price lists, one file for each region."""
_FILE = Path(__file__).with_name("catalog.yaml")
_HOURS_A_MONTH = 730  # AWS divides monthly prices by this number to compute hourly prices


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Gpu(_Entry):
    """The GPUs of an instance type, which are all of the same kind."""

    name: str
    count: int = Field(ge=1)
    memory: float = Field(gt=0, description="memory of one GPU in GiB")
    capability: str = Field(pattern=r"^\d+\.\d+$", description="CUDA compute capability")
    tflops: float = Field(gt=0, description="32-bit TFLOPS of one GPU, from NVIDIA's data sheet")


class Efa(_Entry):
    """Elastic Fabric Adapter of an instance type: interfaces that bypass the operating system, one on each of the first
    `cards` network cards."""

    cards: int = Field(ge=1)
    network: float = Field(gt=0, description="Gbit/s of all these cards together")


class Retired(_Entry):
    """Retirement of an instance type: the day since which AWS no longer starts it, and the type that replaces it."""

    since: str = Field(description="the day, or only the year if the day is unknown")
    successor: str


class InstanceType(_Entry):
    name: str
    architecture: Literal["x86_64", "arm64"]
    vcpu: int = Field(ge=1)
    memory: float = Field(gt=0, description="GiB")
    network: float = Field(gt=0, description="sustained Gbit/s of one network card, without bursts")
    efa: Efa | None = None
    runs_emr: bool = Field(
        description="true if Shoal preprocesses on it; false for types with GPUs, although EMR supports some"
    )
    gpu: Gpu | None = None
    image: str | None = Field(default=None, description="the machine image for training; None if AWS has no image")
    retired: Retired | None = None


class Catalog(_Entry):
    """Catalogue: instance types by name, and machine images for GPU nodes by name. An image is the Systems Manager
    parameter that contains the ID of its newest build."""

    types: Mapping[str, InstanceType]
    images: Mapping[str, str]


class Prices(_Entry):
    """Prices in dollars of everything except instances; None if unknown. A field's name ends with the unit."""

    interface_endpoint_hour: float | None = None
    nat_gateway_hour: float | None = None
    nat_gib: float | None = Field(default=None, description="price of data that a NAT gateway processes")
    public_ipv4_hour: float | None = None
    gp3_gib_month: float | None = None
    efs_gib_month: float | None = None
    efs_read_gib: float | None = Field(default=None, description="price of reads in elastic throughput mode")
    efs_write_gib: float | None = None
    s3_gib_month: float | None = None


class PriceList(_Entry):
    """Prices of a region, valid from `date`: dollars per hour, on demand, Linux.

    A price may be missing, because AWS does not offer the instance type in the region or because the price was never
    looked up. The error then names the command that downloads it.
    """

    region: str
    date: datetime.date
    source: str
    instances: Mapping[str, float]
    emr: Mapping[str, float] = Field(default_factory=dict, description="EMR's surcharges to the prices in `instances`")
    sagemaker: Mapping[str, float] = Field(default_factory=dict, description="prices that replace those in `instances`")
    other: Prices = Prices()
    zones: Mapping[str, Sequence[str]] = Field(
        default_factory=dict, description="IDs of the zones that offer a type, by type; missing if unknown"
    )

    @classmethod
    def lists(cls, region: str, folder: Path = PRICES) -> list[Self]:
        """Return all price lists of a region, the oldest first. The result is empty for a region without a file.

        Raises TopologyError, which names the file, if the file is invalid.
        """
        path = folder / f"{region}.yaml"
        if not path.exists():
            return []
        try:
            found = [cls.model_validate({"region": region, **each}) for each in _read(path, path.stat().st_mtime_ns)]
            return sorted(found, key=lambda each: each.date)
        except (ValueError, yaml.YAMLError, TypeError) as error:
            reason = describe(error) if isinstance(error, ValidationError) else str(error).splitlines()[0]
            raise TopologyError(f"{path} does not contain price lists ({reason}); restore it, or delete it.") from None

    def hourly(self, name: str) -> float:
        """Return the on-demand price of an instance type in dollars per hour. Raises TopologyError if the price is
        missing."""
        return self._price(self.instances.get(find(name).name), f"{name} has no price")

    def emr_hourly(self, name: str) -> float:
        """Return EMR's surcharge for an instance type in dollars per hour. Raises TopologyError if the price is
        missing."""
        return self._price(self.emr.get(find(name).name), f"{name} has no EMR price")

    def managed_hourly(self, name: str) -> float:
        """Return the price of SageMaker training on an instance type in dollars per hour. Raises TopologyError if it is
        missing."""
        return self._price(self.sagemaker.get(find(name).name), f"training by SageMaker on {name} has no price")

    def volume_hourly(self, gib: int) -> float:
        """Return the price of a gp3 volume of `gib` GiB in dollars per hour. Raises TopologyError if the price is
        missing."""
        return self._price(self.other.gp3_gib_month, "gp3 volumes have no price") * gib / _HOURS_A_MONTH

    def _price(self, known: float | None, without: str) -> float:
        if known is None:
            raise TopologyError(
                f"{without} in the list of {self.date} for {self.region}, so AWS might not offer it there; run `make "
                f"prices REGION={self.region}` to check."
                if self.instances
                else f"there is no price list for {self.region}; run `make prices REGION={self.region}` with AWS "
                "credentials to create it."
            )
        return known


@functools.cache
def catalog() -> Catalog:
    """Return the catalogue that Shoal ships. It is read once."""
    raw = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    types = [each for name, family in raw.pop("families").items() for each in _members(name, family)]
    return Catalog.model_validate({**raw, "types": {each["name"]: each for each in types}})


def find(name: str) -> InstanceType:
    """Return the instance type with this name. If it does not exist, raises TopologyError, which suggests similar
    names."""
    types = catalog().types
    if name not in types:
        raise TopologyError(
            f"'{name}' is not an instance type that Shoal knows; did you mean {similar(name.lower(), list(types))}?"
        )
    return types[name]


def of_today() -> list[InstanceType]:
    """Return the instance types that AWS still starts."""
    return [row for row in catalog().types.values() if not row.retired]


def similar(name: str, usable: Sequence[str]) -> str:
    """Return at most three of the `usable` names, the most similar to `name`, joined by `or`."""
    return " or ".join(difflib.get_close_matches(name, usable, n=3, cutoff=0))


def image_of(name: str) -> str:
    """Return the machine image for training on an instance type, as its Systems Manager parameter.

    For a type without an image, return the first image of the catalogue. Such a type has no GPU and is used for
    readers, or it is retired and only the emulator starts it.
    """
    images = catalog().images
    image = find(name).image
    return images[image] if image else next(iter(images.values()))


def prices(region: str, folder: Path = PRICES) -> PriceList:
    """Return the newest price list of a region, or an empty list if the region has no file. Raises TopologyError if the
    file is invalid."""
    if lists := PriceList.lists(region, folder):
        return lists[-1]
    today = datetime.datetime.now(datetime.UTC).date()
    return PriceList(region=region, date=today, source="none are known", instances={})


@functools.cache
def _read(path: Path, _changed: int) -> list[Any]:
    """Return the YAML documents of a file. The result is cached until the modification time `_changed` differs."""
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def _members(family: str, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the instance types of a family. In the file, a family states only once the properties that all of its sizes
    have."""
    for size, (vcpu, memory, network, *more) in row["sizes"].items():
        own: dict[str, Any] = {key: row[key] for key in ("architecture", "image") if key in row}
        if more:
            own["gpu"] = {**row["gpu"], "count": more[0]}
        if more[1:]:
            own["efa"] = dict(zip(("cards", "network"), more[1], strict=True))
        if "retired" in row:
            own["retired"] = {"since": row["retired"], "successor": row["successors"][size]}
        shape = {"vcpu": vcpu, "memory": memory, "network": network}
        yield {"name": f"{family}.{size}", **shape, **own, "runs_emr": not more}
