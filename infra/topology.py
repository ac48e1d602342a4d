"""Reads and checks a topology, the description of a cluster. Holds all names that the stack and its users share.

Do not import `aws_cdk` here, directly or not, because most commands import this module, and it loads slowly.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from infra import addresses, document, parts
from infra.document import FieldError
from infra.managed_spec import ManagedSpec
from infra.on_node import OnNode
from infra.topology_error import TopologyError

STACK_PREFIX = "Shoal-"

TAG_DEPLOYMENT = "shoal:deployment"
TAG_TOPOLOGY = "shoal:topology"
TAG_GROUP = "shoal:group"
TAG_OWNER = "shoal:owner"
TAG_GPUS = "shoal:gpus"
"""On a node group: how many GPUs of each node are used."""
TAG_MARKET = "shoal:market"
"""On a node group: `on-demand` or `spot`."""
TAG_START = "shoal:start"
"""On a node group: `train` or `deploy`, which is when its nodes start."""
TAG_ROLE = "shoal:role"
"""On a node group: `train` or `read`; where it is missing, `train`."""
TAG_EFA = "shoal:efa"
"""On a node group whose nodes have EFA interfaces: `true`."""
TAG_KEEP = "shoal:keep"
"""On a bucket whose data outlive the stack: `true`, or `unfetched` where they do as long as a run was not fetched."""
KEEP_UNFETCHED = "unfetched"
TAG_NODES = "shoal:nodes"
"""On the subnets that the nodes of node groups may be in: `true`."""

OUTPUT_RAW_BUCKET = "RawBucket"
OUTPUT_DATA_BUCKET = "DataBucket"
OUTPUT_LOG_BUCKET = "LogBucket"
OUTPUT_CLUSTER_ID = "ClusterId"
OUTPUT_SHARE_ID = "ShareId"
"""The shared file system's id, or `nfs` where the first GPU node serves the share."""
OUTPUT_INPUTS = "Inputs"
"""The addresses that the topology names as inputs, separated by spaces; absent where it names none."""
OUTPUT_ON_NODE = "PreprocessingNode"
"""Where the node of a deployment preprocesses: its instance type."""
OUTPUT_MANAGED = "ManagedTraining"
"""Where SageMaker trains: what its jobs have in common, as JSON (infra/managed.py)."""
OUTPUT_MAX_DOLLARS = "MaxDollars"
"""The most dollars that the nodes of a run may cost; absent where the topology sets no limit."""
OUTPUT_GENERATION = "Generation"
OUTPUT_GUARD = "GuardFunction"

NODES_PREFIX = "nodes/"
"""Where each node of a node group writes in the data bucket: its state as `<instance-id>.json`, a sign of work as
`.busy`."""
REQUESTS_PREFIX = "requests/"
"""Where it is written in the data bucket what the agents of nodes are to do (bootstrap/agent/documents.py). Nodes may
only read here: who may write here can have them do any training."""
RUNS_PREFIX = "runs/"
"""Where training writes in the data bucket. Nodes of node groups may write here, where the name begins with their
deployment's and a dot, and below `NODES_PREFIX` only. They read here and below `DATASETS_PREFIX` only."""
END_NAME = "ended.json"
"""There, in a run's folder: how it has ended."""
FETCHED_PREFIX = "runs_fetched/"
"""Where `RUN.json` says in the data bucket which objects of a run were fetched: the ETag of each, by its name. It sorts
after `RUNS_PREFIX`, so that an interrupted deletion, which is in this order, leaves no fetched run without it."""
MODELS_PREFIX = "models/"
"""Where SageMaker writes the model of each of its jobs once more, as it hands models on."""
DATASETS_PREFIX = "datasets/"
"""Where preprocessing leaves each dataset in the data bucket."""
WORK_PREFIX = "work/"
"""Where preprocessing keeps intermediate files in the data bucket; they expire."""
EMR_LOGS_PREFIX = "emr/"
"""Where EMR writes in the log bucket: its own log of each cluster, below the cluster's id."""


POLICY_ARN = r"^arn:aws:iam::(\d{12}|aws):policy/[\w+=,.@/-]+$"
"""A policy of an account, or one of AWS's."""


def stack_name(deployment: str) -> str:
    return STACK_PREFIX + check_deployment(deployment)


def budget_name(deployment: str, region: str) -> str:
    """AWS's budget of a deployment: budgets belong to no region, so it has the region's name in its own."""
    return f"{stack_name(deployment)}.{region}"


def check_deployment(name: str) -> str:
    """Return the name. Raises TopologyError when it cannot be part of the names of stacks and parameters."""
    if len(name) > parts.NAME_LENGTH or not parts.NAME.fullmatch(name):
        nearest = re.sub(r"[^A-Za-z0-9]+", "-", name)[: parts.NAME_LENGTH].strip("-") or "demo"
        raise TopologyError(
            f"'{name}' cannot name a deployment: use at most {parts.NAME_LENGTH} letters, digits and single dashes "
            f"between them, such as '{nearest}'."
        )
    return name


def extension_parameter(deployment: str) -> str:
    """The SSM parameter that holds the hours added to the deployment's life."""
    return f"/shoal/{deployment}/extension"


def guard_parameter(deployment: str) -> str:
    """The SSM parameter in which the guard keeps its account: the dollars spent and the sent warnings."""
    return f"/shoal/{deployment}/guard"


def owner_tag(text: str) -> str:
    """The owner's name as a tag value: at most 64 letters, digits and `_ . + - @`."""
    return re.sub(r"[^A-Za-z0-9_.+@-]+", "-", text)[:64].strip("-") or "unknown"


def _tag_of_ones_own(key: str) -> str:
    if key.lower().startswith(("aws:", "shoal:")):
        raise ValueError(f"'{key}' is reserved for AWS or Shoal; choose another name, such as 'project'.")
    return key


_SUFFIXES = (".yaml", ".yml")
_TAG_TEXT = r"^[\w .:/=+@-]*$"
TagKey = Annotated[str, Field(min_length=1, max_length=128, pattern=_TAG_TEXT), AfterValidator(_tag_of_ones_own)]
TagValue = Annotated[str, Field(max_length=256, pattern=_TAG_TEXT)]


class Topology(OnNode):
    """One file of `topologies/`: what `cdk deploy -c topology=NAME` creates."""

    name: str
    description: str = Field(
        min_length=1,
        max_length=1000,
        description="a sentence of at most 1000 characters on what it is for",
        examples=["A small mixed cluster"],
    )
    region: Annotated[str, AfterValidator(parts.known_region)] = Field(
        default="us-east-1", description="an AWS region", examples=["us-east-1"]
    )
    zone: str | None = Field(
        default=None,
        description="an availability zone of the region, or nothing to let the deployment choose",
        examples=["us-east-1b"],
    )
    kms_key: str | None = Field(
        default=None,
        pattern=r"^arn:aws:kms:[a-z0-9-]+:\d{12}:key/[0-9a-z-]+$",
        description="the ARN of a KMS key of the region to encrypt volumes, buckets and share, or nothing for AWS's",
        examples=["arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
    permissions_boundary: str | None = Field(
        default=None,
        pattern=POLICY_ARN,
        description="the ARN of a policy that limits all roles of the deployment, or nothing",
        examples=["arn:aws:iam::111122223333:policy/boundary"],
    )
    owner: str | None = Field(
        default=None, min_length=1, description="the name of the person responsible for it", examples=["ada"]
    )
    tags: Mapping[TagKey, TagValue] = Field(
        default_factory=dict,
        max_length=30,
        description="at most 30 names with texts (letters, digits, spaces and _.:/=+-@) that tag everything",
        examples=["{project: reviews}"],
    )
    preprocessing: parts.PreprocessingSpec | None = Field(
        default=None,
        description="the EMR cluster's fields, or {on: node} where one node does all of the work",
        examples=["{primary: {instance_type: m5.xlarge}}"],
    )
    training: tuple[parts.NodeGroup, ...] = Field(
        default=(),
        strict=False,
        description="a list of node groups",
        examples=["[{instance_type: g5.xlarge, count: 1}]"],
    )
    managed: ManagedSpec | None = Field(
        default=None,
        description="the fields of training jobs of SageMaker, in place of node groups or beside them",
        examples=["{instance_type: ml.g5.xlarge}"],
    )
    max_dollars: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="a number of dollars above 0, up to 1000000, or nothing for no limit",
        examples=[20],
    )
    share: Literal["efs", "nfs"] | None = Field(
        default=None,
        description="efs, nfs (served by the first GPU node), or nothing for no shared folder",
        examples=["efs"],
    )
    data: parts.DataSpec = Field(
        default=parts.DataSpec(), description="the data bucket's fields", examples=["{keep: true}"]
    )
    inputs: tuple[addresses.InputAddress, ...] = Field(
        default=(),
        max_length=addresses.MOST,
        strict=False,
        description=f"a list of at most {addresses.MOST} addresses s3://BUCKET or s3://BUCKET/NAME, each of at most "
        f"{addresses.LONGEST} characters (in NAME letters, digits and _.:/=+@-, no pattern)",
        examples=["[s3://my-reviews/2024/]"],
    )
    guard: parts.GuardSpec = Field(
        default=parts.GuardSpec(), description="the guard's fields", examples=["{max_hours: 12}"]
    )
    network: parts.NetworkSpec = Field(
        default=parts.NetworkSpec(), description="the network's fields", examples=["{egress: nat}"]
    )

    @property
    def trainers(self) -> tuple[parts.NodeGroup, ...]:
        """The node groups whose GPUs are ranks."""
        return tuple(group for group in self.training if group.role == "train")

    @property
    def readers(self) -> tuple[parts.NodeGroup, ...]:
        """The node groups that read a stream, and have no ranks."""
        return tuple(group for group in self.training if group.role == "read")

    @property
    def has_nodes(self) -> bool:
        """Whether anything of it is in a network."""
        return self.preprocessing is not None or bool(self.training)

    @property
    def gpu_nodes(self) -> int:
        return sum(group.count for group in self.trainers)

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if self.preprocessing is None and not self.training and self.managed is None:
            raise ValueError("there is none of `preprocessing`, `training` and `managed`; add at least one of them.")
        return self

    @model_validator(mode="after")
    def _an_existing_subnet_has_its_zone(self) -> Self:
        if self.network.subnet and not self.zone:
            raise FieldError(
                f"the `zone` of the subnet is missing; add it, such as `zone: {self.region}b`.", "network", "subnet"
            )
        return self

    @model_validator(mode="after")
    def _a_reservation_is_in_a_zone(self) -> Self:
        for index, group in enumerate(self.training):
            if group.reservation and not self.zone:
                raise FieldError(
                    f"it is in one zone, and `zone` is missing; add it, such as `zone: {self.region}b`.",
                    *("training", index, "reservation"),
                )
        return self

    @field_validator("kms_key")
    @classmethod
    def _key_of_the_region(cls, key: str | None, info: ValidationInfo) -> str | None:
        region = info.data.get("region")
        if key and region and key.split(":")[3] != region:
            raise ValueError(f"'{key}' is a key of {key.split(':')[3]}, not of {region}; write one of {region}.")
        return key

    @model_validator(mode="after")
    def _parts_for_others(self) -> Self:
        if self.managed:
            self.managed.require_region(self.region)
        if self.share and not self.training:
            raise FieldError("there is no `training` that could use it; leave `share` out.", "share")
        if self.max_dollars and not (self.training or self.managed):
            raise FieldError("there is no `training` that it could limit; leave `max_dollars` out.", "max_dollars")
        return self

    @model_validator(mode="after")
    def _readers_have_somebody_to_read_for(self) -> Self:
        for index, group in enumerate(self.training):
            if group.role == "train":
                continue
            if not self.trainers:
                raise FieldError(
                    "there is no group that trains on what this one reads; add one with GPUs.",
                    *("training", index, "role"),
                )
            if self.share is None:
                raise FieldError(
                    "there is no `share` in which readers could leave what they read; write `share: nfs` or "
                    "`share: efs`.",
                    *("training", index, "role"),
                )
        return self

    @model_validator(mode="after")
    def _all_ranks_by_one_network(self) -> Self:
        for index, group in enumerate(self.training):
            if group.role == "train" and group.efa != self.trainers[0].efa:
                raise FieldError(
                    "ranks reach each other either all by EFA or none; write the same `efa` in each group that trains.",
                    *("training", index, "efa" if group.efa else "instance_type"),
                )
        return self

    @field_validator("zone")
    @classmethod
    def _zone_of_the_region(cls, zone: str | None, info: ValidationInfo) -> str | None:
        region = info.data.get("region")
        if zone and region and not re.fullmatch(rf"{region}[a-z]", zone):
            raise ValueError(f"'{zone}' is not a zone of {region}; write one of its zones, such as {region}b.")
        return zone

    @field_validator("inputs")
    @classmethod
    def _no_input_within_another(cls, named: tuple[str, ...]) -> tuple[str, ...]:
        for index, address in enumerate(named):
            if address in named[:index]:
                raise FieldError(f"{address} is given twice; keep one of them.", index)
            for other in named:
                if other != address and addresses.contains(other, address):
                    raise FieldError(f"{address} is within {other}, which is given too; keep that one.", index)
        return named

    @field_validator("training")
    @classmethod
    def _groups_have_names_of_their_own(cls, groups: tuple[parts.NodeGroup, ...]) -> tuple[parts.NodeGroup, ...]:
        names = [group.name for group in groups]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise FieldError(f"another group is named '{name}' too; give each a name of its own.", index, "name")
            if name in parts.RESERVED_NAMES or name.removesuffix("-Template") in set(names) - {name}:
                raise FieldError(f"'{name}' is the name of another part of the stack; choose another.", index, "name")
        return groups


def instance_types(topology: Topology) -> list[str]:
    """The instance types of the topology, each once, in its order."""
    cluster = topology.preprocessing.instance_types if topology.preprocessing else ()
    return list(dict.fromkeys((*cluster, *(name for group in topology.training for name in group.types))))


def names(folder: Path) -> list[str]:
    """The topologies of a folder, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def is_file(given: str) -> bool:
    """Whether the argument is a file, such as `some/where/NAME.yaml`, and not the name of a topology."""
    return Path(given).suffix in _SUFFIXES


def name_of(given: str) -> str:
    """The name of the topology that the argument, a name or a file, refers to."""
    return Path(given).stem if is_file(given) else given


def anywhere(given: str) -> str:
    """The argument in a form that is valid in any working directory."""
    return str(Path(given).resolve()) if is_file(given) else given


def load(given: str, folder: Path) -> Topology:
    """Read a topology: `NAME.yaml` of the folder by its name, or any file by its path, which ends in .yaml or .yml.

    Raises TopologyError with one sentence that contains file, line and field.
    """
    name = name_of(given)
    source = _own(Path(given), folder) if is_file(given) else _shipped(name, folder)
    check_deployment(name)
    if "name" in source.data:
        raise source.fault(("name",), "'name' is not a field: a topology is named by its file.", at_key=True)
    try:
        return Topology.model_validate({**source.data, "name": name})
    except ValidationError as error:
        raise source.invalid(Topology, error) from None


def _own(file: Path, folder: Path) -> document.Document:
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        hint = f"did you mean {file.stem}?" if file.stem in names(folder) else "check the path."
        raise TopologyError(f"There is no file {file}; {hint}") from None
    except OSError:  # `read` reports the reason
        pass
    return document.read(file, str(file))


def _shipped(name: str, folder: Path) -> document.Document:
    known = names(folder)
    if name not in known:
        nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are: {', '.join(known) or 'none'}."
        raise TopologyError(f"There is no topology '{name}' in {folder.name}/; {hint}")
    return document.read(folder / f"{name}.yaml", f"{folder.name}/{name}.yaml")
