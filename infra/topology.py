"""A topology: which machines a user asks for. Parsed and checked here, together with every name that the stack and its
users agree on.

Easy to get wrong: this module must not import `aws_cdk`, directly or not: the command line reads it at every start.
"""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import botocore.session
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from infra import catalog, document
from infra.errors import TopologyError

STACK_PREFIX = "Shoal-"

TAG_DEPLOYMENT = "shoal:deployment"
TAG_TOPOLOGY = "shoal:topology"
TAG_GROUP = "shoal:group"
TAG_OWNER = "shoal:owner"
TAG_GPUS = "shoal:gpus"
"""On a node group: how many GPUs of each node are used."""

OUTPUT_RAW_BUCKET = "RawBucket"
OUTPUT_DATA_BUCKET = "DataBucket"
OUTPUT_LOG_BUCKET = "LogBucket"
OUTPUT_CLUSTER_ID = "ClusterId"
OUTPUT_SHARE_ID = "ShareId"

NODES_PREFIX = "nodes/"
"""Where each GPU node writes its state in the data bucket, as `<instance-id>.json`."""
RUNS_PREFIX = "runs/"
"""Where training writes in the data bucket; the only other place that GPU nodes may."""
DATASETS_PREFIX = "datasets/"
"""Where preprocessing leaves each dataset in the data bucket."""
WORK_PREFIX = "work/"
"""What preprocessing needs meanwhile in the data bucket; it expires."""

_NAME = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_NAME_LENGTH = 40  # CloudFormation adds logical ids to it in names of at most 63 characters


def stack_name(deployment: str) -> str:
    """The CloudFormation stack of a deployment."""
    return STACK_PREFIX + check_deployment(deployment)


def check_deployment(name: str) -> str:
    """Return the name; a TopologyError when stacks and buckets could not be named after it."""
    if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
        nearest = re.sub(r"[^A-Za-z0-9]+", "-", name)[:_NAME_LENGTH].strip("-") or "demo"
        raise TopologyError(
            f"'{name}' cannot name a deployment: use at most {_NAME_LENGTH} letters, digits and single dashes between "
            f"them, such as '{nearest}'."
        )
    return name


def owner_tag(text: str) -> str:
    """What can stand in a tag of this owner's name: at most 64 letters, digits and `_ . + - @`."""
    return re.sub(r"[^A-Za-z0-9_.+@-]+", "-", text)[:64].strip("-") or "unknown"


def _regions() -> Sequence[str]:
    return botocore.session.get_session().get_available_regions("ec2", partition_name="aws")


def _known_region(value: str) -> str:
    if value not in _regions():
        nearest = difflib.get_close_matches(value, _regions(), n=1, cutoff=0) or ["us-east-1"]
        raise ValueError(f"'{value}' is not an AWS region; did you mean {nearest[0]}?")
    return value


def _runs_emr(value: str) -> str:
    if catalog.find(value) not in _emr_types():
        usable = " or ".join(found.name for found in _emr_types())
        raise ValueError(f"'{value}' does not run preprocessing (EMR, with libraries for x86_64); take {usable}.")
    return value


def _emr_types() -> list[catalog.InstanceType]:
    return [row for row in catalog.catalog().types.values() if row.emr is not None and row.architecture == "x86_64"]


def _has_gpu(value: str) -> str:
    if catalog.find(value).gpu is None:
        usable = " or ".join(n for n, row in catalog.catalog().types.items() if row.gpu and not row.retired)
        raise ValueError(f"'{value}' has no GPU to train on; take {usable}.")
    return value


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Primary(_Part):
    """The node that runs the cluster and the last step, the merge."""

    instance_type: Annotated[str, AfterValidator(_runs_emr)] = Field(
        description="an instance type", examples=["m5.xlarge"]
    )


class Core(_Part):
    """The nodes that map and reduce."""

    instance_type: Annotated[str, AfterValidator(_runs_emr)] = Field(
        description="an instance type", examples=["m5.xlarge"]
    )
    count: int = Field(ge=1, description="a whole number of nodes, at least 1", examples=[1])


class Preprocessing(_Part):
    """The EMR cluster."""

    release: str = Field(
        default="emr-7.13.0",
        pattern=r"^emr-7\.\d+\.\d+$",
        description="an EMR 7 release (Python 3.11 and Hadoop Streaming are on its nodes)",
        examples=["emr-7.13.0"],
    )
    primary: Primary = Field(description="the primary node's fields", examples=["{instance_type: m5.xlarge}"])
    core: Core = Field(description="the core nodes' fields", examples=["{instance_type: m5.xlarge, count: 1}"])


class Group(_Part):
    """GPU nodes of one kind: a *node group*."""

    name: str = Field(
        pattern=rf"^{_NAME.pattern}$",
        max_length=_NAME_LENGTH,
        description="letters, digits and single dashes between them",
        examples=["fast"],
    )
    instance_type: Annotated[str, AfterValidator(_has_gpu)] = Field(
        description="an instance type", examples=["g5.xlarge"]
    )
    count: int = Field(ge=1, description="a whole number of nodes, at least 1", examples=[1])
    gpus: int = Field(ge=1, description="a whole number of GPUs used on each node, at least 1", examples=[1])

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        """Name a group after its type, and use all of its GPUs."""
        if not isinstance(data, dict) or data.get("instance_type") not in catalog.catalog().types:
            return data if not isinstance(data, dict) else {"name": "group", "gpus": 1, **data}
        found = catalog.find(data["instance_type"])
        return {"name": found.name.replace(".", "-"), "gpus": found.gpu.count if found.gpu else 1, **data}

    @model_validator(mode="after")
    def _no_more_gpus_than_there_are(self) -> Self:
        gpu = catalog.find(self.instance_type).gpu
        if gpu is not None and self.gpus > gpu.count:
            raise ValueError(f"gpus is {self.gpus}, but {self.instance_type} has {gpu.count}; use at most {gpu.count}.")
        return self


class Topology(_Part):
    """One file of `topologies/`: what `cdk deploy -c topology=NAME` creates."""

    name: str
    description: str = Field(
        min_length=1, description="a sentence on what it is for", examples=["A small mixed cluster."]
    )
    region: Annotated[str, AfterValidator(_known_region)] = Field(
        default="us-east-1", description="an AWS region", examples=["us-east-1"]
    )
    zone: str | None = Field(
        default=None,
        description="an availability zone of the region, or nothing for its first",
        examples=["us-east-1b"],
    )
    owner: str | None = Field(default=None, min_length=1, description="who answers for it", examples=["ada"])
    preprocessing: Preprocessing | None = Field(default=None, description="the EMR cluster's fields")
    training: tuple[Group, ...] = Field(
        default=(),
        strict=False,
        description="a list of node groups",
        examples=["[{instance_type: g5.xlarge, count: 1}]"],
    )
    share: Literal["efs"] | None = Field(
        default=None, description="efs, or nothing for no shared folder", examples=["efs"]
    )
    retain_data: bool = Field(default=False, description="true or false", examples=["false"])

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if self.preprocessing is None and not self.training:
            raise ValueError("there is neither preprocessing nor training; add at least one of the two.")
        return self

    @field_validator("zone")
    @classmethod
    def _zone_of_the_region(cls, zone: str | None, info: ValidationInfo) -> str | None:
        region = info.data.get("region")
        if zone and region and not re.fullmatch(rf"{region}[a-z]", zone):
            raise ValueError(f"'{zone}' is not a zone of {region}; write one of its zones, such as {region}b.")
        return zone

    @field_validator("training")
    @classmethod
    def _groups_have_names_of_their_own(cls, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        names = [group.name for group in groups]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two groups are named '{twice}'; give each a `name` of its own.")
        return groups


def instance_types(topology: Topology) -> list[str]:
    """The instance types that it names, each once, in its own order."""
    cluster = topology.preprocessing
    parts = [*((cluster.primary, cluster.core) if cluster else ()), *topology.training]
    return list(dict.fromkeys(part.instance_type for part in parts))


def names(folder: Path) -> list[str]:
    """The topologies of a folder, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load(name: str, folder: Path) -> Topology:
    """Read `NAME.yaml` of the folder; any fault is a TopologyError of one sentence with file, line and field."""
    known = names(folder)
    if name not in known:
        nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are: {', '.join(known) or 'none'}."
        raise TopologyError(f"There is no topology '{name}' in {folder.name}/; {hint}")
    source = document.read(folder / f"{name}.yaml")
    check_deployment(name)
    if "name" in source.data:
        raise source.fault(("name",), "'name' is not a field: a topology is named by its file.", at_key=True)
    try:
        return Topology.model_validate({**source.data, "name": name})
    except ValidationError as error:
        raise source.invalid(Topology, error) from None
