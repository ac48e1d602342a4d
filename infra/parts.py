"""The parts of a topology: their fields, defaults and rules.

A field's `description` completes the sentence "... must be ...", and its first example is a valid value. Error messages
show both.
"""

import difflib
import functools
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import botocore.session
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from infra import addresses, catalog
from infra.document import FieldError

NAME = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
NAME_LENGTH = 40  # CloudFormation adds logical ids to it in names of at most 63 characters
RESERVED_NAMES = ("NodeProfile", "NodeRole", "Nodes", "Payload", "Place")
"""Names that a node group cannot have, because the stack gives them to other parts of the training."""

Market = Literal["on-demand", "spot"]
GroupMarket = Literal["on-demand", "spot", "capacity-block"]
Start = Literal["train", "deploy"]
Role = Literal["train", "read"]

MARKET = "on-demand, or spot for AWS's spare capacity, cheaper and taken back at any time"
"""The description of a field that chooses between these."""
ImageId = Annotated[str, Field(pattern=r"^ami-[0-9a-f]{8,17}$")]
_IMAGE = "the id of a machine image of yours, or nothing for AWS's"


@functools.cache
def _regions() -> Sequence[str]:
    return botocore.session.get_session().get_available_regions("ec2", partition_name="aws")


def known_region(value: str) -> str:
    """Return the region. Raises ValueError with the nearest one when AWS has no region of this name."""
    if value not in _regions():
        nearest = difflib.get_close_matches(value.lower(), _regions(), n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else "write its code, such as us-east-1."
        raise ValueError(f"'{value}' is not an AWS region; {hint}")
    return value


def _runs_emr(value: str) -> str:
    if not catalog.find(value).runs_emr:
        usable = [row.name for row in catalog.of_today() if row.runs_emr]
        raise ValueError(f"'{value}' does not run preprocessing (EMR); take {catalog.similar(value, usable)}.")
    return value


EmrType = Annotated[str, AfterValidator(_runs_emr)]
KnownType = Annotated[str, AfterValidator(lambda value: catalog.find(value).name)]


class TopologyPart(BaseModel):
    """What all parts have in common: no unknown field, no silent conversion, no change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Primary(TopologyPart):
    """The node that manages the cluster and runs the last step, the merge."""

    instance_type: EmrType = Field(description="an instance type", examples=["m5.xlarge"])
    market: Market = Field(default="on-demand", description=MARKET, examples=["on-demand"])


class WorkersSpec(TopologyPart):
    """Nodes that map and reduce: core nodes, which also hold HDFS, or task nodes, which do not."""

    instance_type: EmrType = Field(description="an instance type", examples=["m5.xlarge"])
    count: int = Field(ge=1, le=1000, description="a whole number of nodes from 1 to 1000", examples=[1])
    market: Market = Field(default="on-demand", description=MARKET, examples=["on-demand"])


class PreprocessingSpec(TopologyPart):
    """The EMR cluster; without core nodes the primary one does all of the work."""

    release: str = Field(
        default="emr-7.13.0",
        pattern=r"^emr-7\.\d+\.\d+$",
        description="an EMR 7 release (Python 3.11 and Hadoop Streaming are on its nodes; emr-spark-8 has no Hadoop)",
        examples=["emr-7.13.0"],
    )
    image: ImageId | None = Field(default=None, description=_IMAGE, examples=["ami-0a1b2c3d4e5f60718"])
    primary: Primary = Field(description="the primary node's fields", examples=["{instance_type: m5.xlarge}"])
    core: WorkersSpec | None = Field(
        default=None, description="the core nodes' fields", examples=["{instance_type: m5.xlarge, count: 1}"]
    )
    task: WorkersSpec | None = Field(
        default=None, description="the task nodes' fields", examples=["{instance_type: m5.xlarge, count: 1}"]
    )

    @property
    def workers(self) -> tuple[tuple[str, WorkersSpec], ...]:
        """The groups of core and task nodes that there are, each with its role."""
        return tuple((role, group) for role, group in (("core", self.core), ("task", self.task)) if group)

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The primary node's type, then the workers'."""
        return (self.primary.instance_type, *(group.instance_type for _, group in self.workers))

    @property
    def architecture(self) -> str:
        """The processor's architecture, the same on all nodes."""
        return catalog.find(self.primary.instance_type).architecture

    @model_validator(mode="after")
    def _task_nodes_need_core_nodes(self) -> Self:
        if self.task and not self.core:
            raise FieldError("there is no `core`, and EMR needs at least one core node beside it; add it.", "task")
        return self

    @model_validator(mode="after")
    def _one_architecture(self) -> Self:
        for role, group in self.workers:
            name = group.instance_type
            if catalog.find(name).architecture != self.architecture:
                usable = [
                    row.name for row in catalog.of_today() if row.runs_emr and row.architecture == self.architecture
                ]
                raise FieldError(
                    f"{name} is {catalog.find(name).architecture}, but the primary node's {self.primary.instance_type} "
                    f"is {self.architecture}, and all nodes of a cluster need the same architecture, because they get "
                    f"the same libraries; take {catalog.similar(name, usable)}.",
                    role,
                    "instance_type",
                )
        return self


def default_name(instance_type: str) -> str:
    """The name of a node group to which its topology gives none."""
    return instance_type.replace(".", "-")


def can_read(row: catalog.InstanceType) -> bool:
    """Whether readers run on a type: it has no GPU, and the processor of the image of all nodes."""
    return row.gpu is None and row.architecture == "x86_64"


def _alike(row: catalog.InstanceType) -> str:
    """What all nodes of a group have in common: they have one machine image, and as many ranks each."""
    return f"{row.gpu.count if row.gpu else 0} GPUs on {row.architecture}"


class NodeGroup(TopologyPart):
    """Nodes of one kind, which train on GPUs or read: a *node group*."""

    name: str = Field(
        pattern=rf"^{NAME.pattern}$",
        max_length=NAME_LENGTH,
        description=f"at most {NAME_LENGTH} letters, digits and single dashes between them",
        examples=["fast"],
    )
    role: Role = Field(
        default="train",
        description="train, or read for nodes without GPUs that read a stream of text for those that train",
        examples=["train"],
    )
    instance_types: tuple[KnownType, ...] = Field(
        default=(),
        strict=False,
        description="a list of instance types in place of `instance_type`, for spot nodes",
        examples=["[g6.xlarge, g5.xlarge]"],
    )
    instance_type: KnownType = Field(description="an instance type", examples=["g5.xlarge"])
    """The first of `instance_types`, where these are given."""
    count: int = Field(ge=1, le=1000, description="a whole number of nodes from 1 to 1000", examples=[1])
    gpus: int = Field(default=0, ge=1, description="a whole number of GPUs used on each node, at least 1", examples=[1])
    """0 in a group that reads, which cannot give the field."""
    market: GroupMarket = Field(
        default="on-demand",
        description=f"{MARKET}, or capacity-block for a Capacity Block, which is paid in advance",
        examples=["on-demand"],
    )
    reservation: str | None = Field(
        default=None,
        pattern=r"^cr-[0-9a-f]{8,17}$",
        description="the id of a capacity reservation or Capacity Block in which its nodes start",
        examples=["cr-0a1b2c3d4e5f60718"],
    )
    image: ImageId | None = Field(default=None, description=_IMAGE, examples=["ami-0a1b2c3d4e5f60718"])
    start: Start = Field(
        default="train",
        description="train (there are no nodes until `shoal train`) or deploy (they start at once)",
        examples=["train"],
    )

    efa: bool = Field(
        default=False,
        description="true or false: whether its nodes reach each other by Elastic Fabric Adapter, through all of their "
        "network cards",
        examples=["true"],
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        """Name a group after its type, or `spot` where it has several, and use all of its GPUs."""
        if not isinstance(data, dict):
            return data
        if (several := data.get("instance_types")) and isinstance(several, list | tuple):
            data = {**({"name": "spot"} if several[1:] else {}), "instance_type": several[0], **data}
        found = catalog.catalog().types.get(str(data.get("instance_type")))
        named = {"name": default_name(found.name) if found else "group"}
        return {**named, **({"gpus": found.gpu.count} if found and found.gpu else {}), **data}

    @property
    def types(self) -> tuple[str, ...]:
        """The instance types that its nodes may have."""
        return self.instance_types or (self.instance_type,)

    @model_validator(mode="after")
    def _several_types_are_alike(self) -> Self:
        first, *others = (catalog.find(name) for name in self.types)
        if len(set(self.types)) < len(self.types):
            raise FieldError("has a type twice; leave one out.", "instance_types")
        if self.instance_types and self.instance_type != first.name:
            raise FieldError("the list of `instance_types` is in place of it; leave it out.", "instance_type")
        if others and (self.market != "spot" or self.efa):
            said = "several `instance_types` are for `market: spot`, without EFA; write one."
            raise FieldError(said, "efa" if self.efa else "market")
        for row in others:
            if _alike(row) != _alike(first):
                said = f"{row.name} has {_alike(row)}, {first.name} has {_alike(first)}; give it a group of its own."
                raise FieldError(said, "instance_types")
        return self

    @model_validator(mode="after")
    def _readers_have_no_gpus(self) -> Self:
        row = catalog.find(self.instance_type)
        if self.role != "read":
            return self
        if not can_read(row):
            usable = [each.name for each in catalog.of_today() if can_read(each)]
            why = (
                "has GPUs, which a group that reads would leave idle"
                if row.gpu
                else f"is {row.architecture}, but the machine image of those who read and train is x86_64"
            )
            raise FieldError(f"'{row.name}' {why}; take {catalog.similar(row.name, usable)}.", "instance_type")
        if "gpus" in self.model_fields_set:
            raise FieldError("a group that reads has none; leave `gpus` out.", "gpus")
        return self

    @model_validator(mode="after")
    def _trainers_have_gpus(self) -> Self:
        row = catalog.find(self.instance_type)
        if self.role != "train":
            return self
        if row.gpu is None:
            usable = [each.name for each in catalog.of_today() if each.gpu]
            raise FieldError(
                f"'{row.name}' has no GPU to train on; take {catalog.similar(row.name, usable)}.", "instance_type"
            )
        if self.gpus > row.gpu.count:
            raise FieldError(
                f"{row.name} has {row.gpu.count}, fewer than {self.gpus}; write at most {row.gpu.count}.", "gpus"
            )
        return self

    @model_validator(mode="after")
    def _the_market_has_reservations(self) -> Self:
        if self.market == "capacity-block" and self.reservation is None:
            raise FieldError("a Capacity Block is named by its `reservation`; add it.", "market")
        if self.market == "spot" and self.reservation:
            raise FieldError("spot nodes start in no reservation; leave it out.", "reservation")
        return self

    @model_validator(mode="after")
    def _the_type_has_efa(self) -> Self:
        if self.efa and catalog.find(self.instance_type).efa is None:
            nearest = catalog.similar(self.instance_type, [row.name for row in catalog.of_today() if row.efa])
            raise FieldError(f"EC2 gives {self.instance_type} no EFA; leave it out, or take {nearest}.", "efa")
        return self


class DataSpec(TopologyPart):
    """The data bucket: datasets, runs, models."""

    bucket: str | None = Field(
        default=None,
        pattern=rf"^{addresses.BUCKET.pattern}$",
        description="the name of a bucket that exists (3 to 63 small letters, digits, dots and dashes), or nothing for "
        "one of the deployment's own",
        examples=["my-reviews"],
    )
    keep: bool | None = Field(
        default=None,
        description="true (the data bucket outlives the stack), false (it is deleted with it), or nothing (it stays if "
        "it holds runs that were not fetched)",
        examples=["false"],
    )

    @field_validator("bucket")
    @classmethod
    def _possible_bucket(cls, bucket: str | None) -> str | None:
        return addresses.possible_bucket(bucket) if bucket else bucket

    @model_validator(mode="after")
    def _an_existing_bucket_stays_anyway(self) -> Self:
        if self.bucket and self.keep is not None:
            raise FieldError("an existing bucket is never emptied or deleted; leave `keep` out.", "keep")
        return self


class GuardSpec(TopologyPart):
    """When the deployment is switched off by itself."""

    max_hours: int = Field(default=12, ge=1, le=720, description="a whole number of hours from 1 to 720", examples=[12])
    idle_minutes: int = Field(
        default=30, ge=5, le=10_080, description="a whole number of minutes from 5 to 10080", examples=[30]
    )
    budget: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="a number of dollars above 0, or nothing for no limit",
        examples=[100],
    )
    mail: str | None = Field(
        default=None,
        pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
        description="a mail address for its warnings, or nothing",
        examples=["me@example.org"],
    )


class NetworkSpec(TopologyPart):
    """The network of all nodes: one of the deployment's own, or a subnet that exists."""

    egress: Literal["none", "nat"] = Field(
        default="none", description="none, or nat for a way out to the internet", examples=["none"]
    )
    vpc: str | None = Field(
        default=None,
        pattern=r"^vpc-[0-9a-f]{8,17}$",
        description="the id of a VPC that exists",
        examples=["vpc-0a1b2c3d"],
    )
    subnet: str | None = Field(
        default=None,
        pattern=r"^subnet-[0-9a-f]{8,17}$",
        description="the id of a private subnet of that VPC",
        examples=["subnet-0a1b2c3d"],
    )
    shell: bool = Field(
        default=False,
        description="true or false: whether you can open a shell on nodes by Systems Manager",
        examples=["true"],
    )

    @model_validator(mode="after")
    def _vpc_and_subnet_together(self) -> Self:
        if (self.vpc is None) != (self.subnet is None):
            given, missing = ("vpc", "subnet") if self.vpc else ("subnet", "vpc")
            raise FieldError(f"there is no `{missing}` beside it, and an existing network needs both; add it.", given)
        if self.vpc and self.egress == "nat":
            raise FieldError("the routes of an existing network are not changed; leave `egress` out.", "egress")
        return self
