"""The instance types that a topology may name: hardware, price, and whether AWS still starts them.

Easy to get wrong: CDK's enums and AWS's price lists still hold types that can no longer be started. Only `retired` here
says so.
"""

import difflib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from infra.errors import TopologyError

_FILE = Path(__file__).with_name("catalog.yaml")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Gpu(_Entry):
    """The GPUs of one machine; they are all of a kind."""

    name: str
    count: int = Field(ge=1)
    memory: float = Field(gt=0, description="GiB of one GPU")
    capability: str = Field(pattern=r"^\d+\.\d+$", description="CUDA compute capability")


class Retired(_Entry):
    """Why a type cannot be started any more, and what to take instead."""

    since: str = Field(description="the day, or the year where only that is known")
    successor: str


class InstanceType(_Entry):
    """One row of the catalogue."""

    name: str
    architecture: Literal["x86_64", "arm64"]
    vcpu: int = Field(ge=1)
    memory: float = Field(gt=0, description="GiB")
    price: float = Field(gt=0, description="dollars an hour, on demand, us-east-1")
    emr: float | None = Field(default=None, gt=0, description="dollars an hour that EMR adds; None: not on EMR")
    gpu: Gpu | None = None
    retired: Retired | None = None


class Prices(_Entry):
    """Dollars for what is not an instance, us-east-1."""

    interface_endpoint_hour: float
    gp3_gib_month: float


class Catalog(_Entry):
    """The whole catalogue, by the type's name."""

    prices: Prices
    types: Mapping[str, InstanceType]


@functools.cache
def catalog() -> Catalog:
    """Read the shipped catalogue, once a process."""
    raw = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    types = {name: {"name": name, **row} for name, row in raw["types"].items()}
    return Catalog.model_validate({**raw, "types": types})


def find(name: str) -> InstanceType:
    """Return the type of this name; a TopologyError with the nearest names when there is none."""
    types = catalog().types
    if name not in types:
        nearest = difflib.get_close_matches(name, types, n=3, cutoff=0.5) or sorted(types)
        raise TopologyError(
            f"'{name}' is not an instance type of the catalogue; did you mean {' or '.join(nearest)}? "
            f"infra/catalog.yaml lists them all."
        )
    return types[name]
