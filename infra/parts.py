"""Models of the parts of a topology, with their fields, defaults and rules.

A field's `description` completes the sentence "... must be ...", and its first example is a valid value. Error messages
and the JSON schema show both.
"""

import difflib
import functools
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import botocore.session
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from common import names
from infra import addresses, catalog
from infra.document import FieldError

RESERVED_NAMES = ("NodeProfile", "NodeRole", "Nodes", "Payload", "Place")
"""Names that node groups must not have, because the stack uses them for other constructs of the training stage."""

Market = Literal["on-demand", "spot"]
GroupMarket = Literal["on-demand", "spot", "capacity-block"]
Start = Literal["train", "deploy"]
Role = Literal["train", "read"]

_SPOT = "spot (cheaper spare capacity, which AWS can take back at any time)"
MARKET = f"on-demand or {_SPOT}"
"""Description of fields of the type `Market`."""
ImageId = Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")]
_IMAGE = "the ID of your own machine image, or nothing for AWS's image"


@functools.cache
def _regions() -> Sequence[str]:
    return botocore.session.get_session().get_available_regions("ec2", partition_name="aws")


def known_region(value: str) -> str:
    """Return `value` if it is an AWS region. Otherwise, raises ValueError, which suggests the most similar region."""
    if value not in _regions():
        nearest = difflib.get_close_matches(value.lower(), _regions(), n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else "write its code, such as us-east-1."
        raise ValueError(f"'{value}' is not an AWS region; {hint}")
    return value


def _runs_emr(value: str) -> str:
    if not catalog.find(value).runs_emr:
        usable = [row.name for row in catalog.of_today() if row.runs_emr]
        raise ValueError(f"EMR does not run on '{value}'; use {catalog.similar(value, usable)}.")
    return value


EmrType = Annotated[str, AfterValidator(_runs_emr)]
KnownType = Annotated[str, AfterValidator(lambda value: catalog.find(value).name)]


class TopologyPart(BaseModel):
    """Base class of all parts. A part is immutable, refuses unknown fields and does not convert types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Primary(TopologyPart):
    """Primary node of an EMR cluster. The primary node manages the cluster and runs the last step, the merge."""

    instance_type: EmrType = Field(description="an EC2 instance type that EMR supports", examples=["m5.xlarge"])
    market: Market = Field(default="on-demand", description=MARKET, examples=["on-demand"])


class WorkersSpec(TopologyPart):
    """Core nodes or task nodes of an EMR cluster. Both kinds run tasks. Only core nodes store HDFS data."""

    instance_type: EmrType = Field(description="an EC2 instance type that EMR supports", examples=["m5.xlarge"])
    count: int = Field(ge=1, le=1000, description="a whole number of nodes from 1 to 1000", examples=[1])
    market: Market = Field(default="on-demand", description=MARKET, examples=["on-demand"])


class PreprocessingSpec(TopologyPart):
    """EMR cluster for preprocessing. Without core nodes, the primary node does all the work."""

    release: str = Field(
        default="emr-7.13.0",
        # Before 7.10, EMRFS writes an object NAME_$folder$ for each folder, outside the prefixes that a cluster may
        # write to (Amazon EMR release guide, "EMR File System (EMRFS)", read on 2026-11-29).
        pattern=r"^emr-7\.[1-9]\d+\.\d+$",
        description="an EMR release from emr-7.10.0 on, which has Python 3.11, S3A and Hadoop Streaming (emr-spark-8 "
        "has no Hadoop)",
        examples=["emr-7.13.0"],
    )
    image: ImageId | None = Field(default=None, description=_IMAGE, examples=["ami-0a1b2c3d4e5f60718"])
    primary: Primary = Field(description="the fields of the primary node", examples=["{instance_type: m5.xlarge}"])
    core: WorkersSpec | None = Field(
        default=None,
        description="the fields of the core nodes, which run tasks and store HDFS data",
        examples=["{instance_type: m5.xlarge, count: 1}"],
    )
    task: WorkersSpec | None = Field(
        default=None,
        description="the fields of the task nodes, which only run tasks",
        examples=["{instance_type: m5.xlarge, count: 1}"],
    )

    @property
    def workers(self) -> tuple[tuple[str, WorkersSpec], ...]:
        """Pairs of role (`core` or `task`) and instance group, for the groups that the cluster has."""
        return tuple((role, group) for role, group in (("core", self.core), ("task", self.task)) if group)

    @property
    def groups(self) -> tuple[tuple[str, str, int, Market], ...]:
        """Role, instance type, number of nodes and market of each instance group, with the primary node first."""
        workers = ((role, group.instance_type, group.count, group.market) for role, group in self.workers)
        return (("primary", self.primary.instance_type, 1, self.primary.market), *workers)

    @property
    def architecture(self) -> str:
        """CPU architecture, which is the same on all nodes."""
        return catalog.find(self.primary.instance_type).architecture

    @model_validator(mode="after")
    def _require_core_for_task(self) -> Self:
        if self.task and not self.core:
            raise FieldError("EMR needs at least one core node for task nodes; add `core`.", "task")
        return self

    @model_validator(mode="after")
    def _require_one_architecture(self) -> Self:
        for role, group in self.workers:
            name = group.instance_type
            if catalog.find(name).architecture != self.architecture:
                usable = [
                    row.name for row in catalog.of_today() if row.runs_emr and row.architecture == self.architecture
                ]
                raise FieldError(
                    f"{name} is {catalog.find(name).architecture}, but the primary node's {self.primary.instance_type} "
                    f"is {self.architecture}. All nodes of a cluster install the same libraries and need the same "
                    f"architecture; use {catalog.similar(name, usable)}.",
                    role,
                    "instance_type",
                )
        return self


def default_name(instance_type: str) -> str:
    """Return the default name of a node group with this instance type."""
    return instance_type.replace(".", "-")


def can_read(row: catalog.InstanceType) -> bool:
    """Return whether readers can run on the instance type: it must have no GPU, and must have the CPU architecture of
    the nodes' machine image."""
    return row.gpu is None and row.architecture == "x86_64"


def _shape(row: catalog.InstanceType) -> str:
    """Return, as text, the properties in which all types of a group must agree: GPUs per node, and CPU architecture."""
    return f"{row.gpu.count if row.gpu else 0} GPUs on {row.architecture}"


class NodeGroup(TopologyPart):
    """Node group: an Auto Scaling group of equal nodes, which either train on GPUs or read a text stream."""

    name: str = Field(
        pattern=rf"^{names.DEPLOYMENT.pattern}$",
        max_length=names.DEPLOYMENT_LENGTH,
        description=f"a name of at most {names.DEPLOYMENT_LENGTH} letters, digits and single dashes between them",
        examples=["fast"],
    )
    role: Role = Field(
        default="train",
        description="train, or read (nodes without GPUs that read a text stream for the nodes that train)",
        examples=["train"],
    )
    instance_types: tuple[KnownType, ...] = Field(
        default=(),
        strict=False,
        description="a list of instance types for spot nodes, instead of `instance_type`",
        examples=["[g6.xlarge, g5.xlarge]"],
    )
    instance_type: KnownType = Field(description="the EC2 instance type of the nodes", examples=["g5.xlarge"])
    """Instance type of the nodes (default: the first of `instance_types`)."""
    count: int = Field(ge=1, le=1000, description="a whole number of nodes from 1 to 1000", examples=[1])
    gpus: int = Field(default=0, ge=1, description="a whole number of GPUs used on each node, at least 1", examples=[1])
    """GPUs in use per node (default: all GPUs of the node). For readers it is 0 and must not be set."""
    market: GroupMarket = Field(
        default="on-demand",
        description=f"on-demand, {_SPOT} or capacity-block (a Capacity Block, which is paid in advance)",
        examples=["on-demand"],
    )
    reservation: str | None = Field(
        default=None,
        pattern=r"^cr-[0-9a-f]{8,17}$",
        description="the ID of the capacity reservation or Capacity Block in which the nodes start",
        examples=["cr-0a1b2c3d4e5f60718"],
    )
    image: ImageId | None = Field(default=None, description=_IMAGE, examples=["ami-0a1b2c3d4e5f60718"])
    start: Start = Field(
        default="train",
        description="train (the nodes start with `shoal train`) or deploy (they start with the stack)",
        examples=["train"],
    )

    efa: bool = Field(
        default=False,
        description="true or false: whether the nodes communicate by Elastic Fabric Adapter, through all of their "
        "network cards",
        examples=["true"],
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        """Fill in the defaults. The name is derived from the instance type, or is `spot` if there are several types.
        All GPUs are used."""
        if not isinstance(data, dict):
            return data
        if (several := data.get("instance_types")) and isinstance(several, list | tuple):
            data = {**({"name": "spot"} if several[1:] else {}), "instance_type": several[0], **data}
        kind = catalog.catalog().types.get(str(data.get("instance_type")))
        named = {"name": default_name(kind.name) if kind else "group"}
        return {**named, **({"gpus": kind.gpu.count} if kind and kind.gpu else {}), **data}

    @property
    def types(self) -> tuple[str, ...]:
        """Instance types that the nodes can have."""
        return self.instance_types or (self.instance_type,)

    @model_validator(mode="after")
    def _require_equal_types(self) -> Self:
        first, *others = (catalog.find(name) for name in self.types)
        if len(set(self.types)) < len(self.types):
            raise FieldError("an instance type is listed twice; remove one of them.", "instance_types")
        if self.instance_types and self.instance_type != first.name:
            raise FieldError("`instance_types` replaces `instance_type`; remove `instance_type`.", "instance_type")
        if others and (self.market != "spot" or self.efa):
            sentence = "several `instance_types` need `market: spot` and no EFA; write one type."
            raise FieldError(sentence, "efa" if self.efa else "market")
        for row in others:
            if _shape(row) != _shape(first):
                sentence = (
                    f"{row.name} has {_shape(row)}, {first.name} has {_shape(first)}; put it into a different group."
                )
                raise FieldError(sentence, "instance_types")
        return self

    @model_validator(mode="after")
    def _require_readers_without_gpus(self) -> Self:
        row = catalog.find(self.instance_type)
        if self.role != "read":
            return self
        if not can_read(row):
            usable = [each.name for each in catalog.of_today() if can_read(each)]
            why = (
                "has GPUs, which readers do not use"
                if row.gpu
                else f"is {row.architecture}, but the machine image of all nodes is x86_64"
            )
            raise FieldError(f"'{row.name}' {why}; use {catalog.similar(row.name, usable)}.", "instance_type")
        if "gpus" in self.model_fields_set:
            raise FieldError("readers have no GPUs; remove `gpus`.", "gpus")
        return self

    @model_validator(mode="after")
    def _require_trainers_with_gpus(self) -> Self:
        row = catalog.find(self.instance_type)
        if self.role != "train":
            return self
        if row.gpu is None:
            usable = [each.name for each in catalog.of_today() if each.gpu]
            raise FieldError(
                f"'{row.name}' has no GPU to train on; use {catalog.similar(row.name, usable)}.", "instance_type"
            )
        if self.gpus > row.gpu.count:
            raise FieldError(
                f"{row.name} has {row.gpu.count} GPUs; write at most {row.gpu.count}, not {self.gpus}.", "gpus"
            )
        return self

    @model_validator(mode="after")
    def _require_market_of_reservation(self) -> Self:
        if self.market == "capacity-block" and self.reservation is None:
            raise FieldError("the `reservation` of the Capacity Block is missing; add it.", "market")
        if self.market == "spot" and self.reservation:
            raise FieldError("spot nodes cannot use a reservation; remove `reservation`.", "reservation")
        return self

    @model_validator(mode="after")
    def _require_type_with_efa(self) -> Self:
        if self.efa and catalog.find(self.instance_type).efa is None:
            nearest = catalog.similar(self.instance_type, [row.name for row in catalog.of_today() if row.efa])
            raise FieldError(f"{self.instance_type} does not support EFA; remove `efa`, or use {nearest}.", "efa")
        return self


class DataSpec(TopologyPart):
    """Data bucket of a deployment, for datasets, runs and models."""

    bucket: str | None = Field(
        default=None,
        pattern=rf"^{names.BUCKET.pattern}$",
        description="the name of an existing bucket (3 to 63 lowercase letters, digits, dots and dashes), or nothing "
        "for a new one",
        examples=["my-reviews"],
    )
    keep: bool | None = Field(
        default=None,
        description="true (the data bucket outlives the stack), false (it is deleted with the stack), or nothing "
        "(the bucket remains while it contains runs that were not fetched)",
        examples=["false"],
    )

    @field_validator("bucket")
    @classmethod
    def _possible_bucket(cls, bucket: str | None) -> str | None:
        return addresses.possible_bucket(bucket) if bucket else bucket

    @model_validator(mode="after")
    def _refuse_keep_of_existing_bucket(self) -> Self:
        if self.bucket and self.keep is not None:
            raise FieldError("Shoal never empties or deletes an existing bucket; remove `keep`.", "keep")
        return self


class GuardSpec(TopologyPart):
    """Limits at which the guard stops nodes or deletes the stack."""

    max_hours: int = Field(
        default=12,
        ge=1,
        le=720,
        description="a whole number of hours from 1 to 720, after which the guard deletes the stack",
        examples=[12],
    )
    idle_minutes: int = Field(
        default=30,
        ge=5,
        le=10_080,
        description="a whole number of minutes from 5 to 10080, after which the guard stops idle nodes and clusters",
        examples=[30],
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="a number of dollars above 0 at which the guard deletes the stack, or nothing for no limit",
        examples=[100],
    )
    mail: str | None = Field(
        default=None,
        pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
        description="an email address for the guard's warnings, or nothing",
        examples=["me@example.org"],
    )


class NetworkSpec(TopologyPart):
    """Network of all nodes: a new VPC, or an existing subnet."""

    egress: Literal["none", "nat"] = Field(
        default="none", description="none, or nat (a NAT gateway to the internet)", examples=["none"]
    )
    vpc: str | None = Field(
        default=None,
        pattern=r"^vpc-[0-9a-f]{8,17}$",
        description="the ID of an existing VPC",
        examples=["vpc-0a1b2c3d"],
    )
    subnet: str | None = Field(
        default=None,
        pattern=r"^subnet-[0-9a-f]{8,17}$",
        description="the ID of a private subnet of that VPC",
        examples=["subnet-0a1b2c3d"],
    )
    shell: bool = Field(
        default=False,
        description="true or false: whether you can open a shell on nodes through Systems Manager",
        examples=["true"],
    )

    @model_validator(mode="after")
    def _require_vpc_with_subnet(self) -> Self:
        if (self.vpc is None) != (self.subnet is None):
            given, missing = ("vpc", "subnet") if self.vpc else ("subnet", "vpc")
            raise FieldError(f"an existing network needs both `vpc` and `subnet`; add `{missing}`.", given)
        if self.vpc and self.egress == "nat":
            raise FieldError("Shoal does not change the routes of an existing network; remove `egress`.", "egress")
        return self
