"""Reads and checks topologies.

Do not import `aws_cdk` here, not even indirectly, because most commands import this module, and `aws_cdk` loads slowly.
"""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from common import names
from infra import addresses, document, parts
from infra.document import FieldError
from infra.managed_spec import ManagedSpec
from infra.on_node import OnNode
from infra.topology_error import TopologyError

POLICY_ARN = r"^arn:aws:iam::(\d{12}|aws):policy/[\w+=,.@/-]+$"
"""Pattern for the ARN of a customer managed policy or an AWS managed policy."""


def stack_name(deployment: str) -> str:
    return names.STACK_PREFIX + check_deployment(deployment)


def check_deployment(name: str) -> str:
    """Return `name`. Raises TopologyError if AWS does not accept it as part of the names of stacks and parameters."""
    if len(name) > names.DEPLOYMENT_LENGTH or not names.DEPLOYMENT.fullmatch(name):
        nearest = re.sub(r"[^A-Za-z0-9]+", "-", name)[: names.DEPLOYMENT_LENGTH].strip("-") or "demo"
        raise TopologyError(
            f"'{name}' cannot name a deployment: use at most {names.DEPLOYMENT_LENGTH} letters, digits and single "
            f"dashes between them, such as '{nearest}'."
        )
    return name


def owner_tag(text: str) -> str:
    """Convert the owner's name to a tag value: at most 64 letters, digits and characters of `_ . + - @`."""
    return re.sub(r"[^A-Za-z0-9_.+@-]+", "-", text)[:64].strip("-") or "unknown"


def _unreserved_key(key: str) -> str:
    if key.lower().startswith(("aws:", "shoal:")):
        raise ValueError(f"'{key}' is reserved for AWS or Shoal; choose a different name, such as 'project'.")
    return key


_SUFFIXES = (".yaml", ".yml")
_TAG_TEXT = r"^[\w .:/=+@-]*$"
TagKey = Annotated[str, Field(min_length=1, max_length=128, pattern=_TAG_TEXT), AfterValidator(_unreserved_key)]
TagValue = Annotated[str, Field(max_length=256, pattern=_TAG_TEXT)]


def _refuse_nested_inputs(named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses. Raises FieldError if an address contains another address."""
    for index, address in enumerate(named):
        if address in named[:index]:
            raise FieldError(f"{address} is listed twice; remove one of them.", index)
        for other in named:
            if other != address and addresses.contains(other, address):
                raise FieldError(f"{address} is inside {other}, which is also listed; remove {address}.", index)
    return named


def _require_unique_group_names(groups: tuple[parts.NodeGroup, ...]) -> tuple[parts.NodeGroup, ...]:
    """Return the groups. Raises FieldError for a name that is not unique or that the stack needs."""
    given = [group.name for group in groups]
    for index, name in enumerate(given):
        if name in given[:index]:
            raise FieldError(f"two groups have the name '{name}'; give each a different name.", index, "name")
        if name in parts.RESERVED_NAMES or name.removesuffix("-Template") in set(given) - {name}:
            raise FieldError(f"'{name}' is reserved by the stack; choose a different name.", index, "name")
    return groups


class Topology(OnNode):
    """Description of a deployment: the content of a topology file."""

    name: str
    description: str = Field(
        min_length=1,
        max_length=1000,
        description="a sentence of at most 1000 characters that says what the topology is for",
        examples=["A small mixed cluster"],
    )
    region: Annotated[str, AfterValidator(parts.known_region)] = Field(
        default="us-east-1", description="the code of the AWS region to deploy to", examples=["us-east-1"]
    )
    zone: str | None = Field(
        default=None,
        description="an Availability Zone of the region for all nodes, or nothing to let the deployment choose",
        examples=["us-east-1b"],
    )
    kms_key: str | None = Field(
        default=None,
        pattern=r"^arn:aws:kms:[a-z0-9-]+:\d{12}:key/[0-9a-z-]+$",
        description="the ARN of a KMS key in the region for volumes, buckets and share, or nothing for AWS's keys",
        examples=["arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
    permissions_boundary: str | None = Field(
        default=None,
        pattern=POLICY_ARN,
        description="the ARN of an IAM policy that limits all roles of the deployment, or nothing",
        examples=["arn:aws:iam::111122223333:policy/boundary"],
    )
    owner: str | None = Field(
        default=None, min_length=1, description="the name of the person responsible", examples=["ada"]
    )
    tags: Mapping[TagKey, TagValue] = Field(
        default_factory=dict,
        max_length=30,
        description="at most 30 tags for all resources, with keys and values of letters, digits, spaces and _.:/=+-@",
        examples=["{project: reviews}"],
    )
    preprocessing: parts.PreprocessingSpec | None = Field(
        default=None,
        description="the fields of an EMR cluster, or {on: node} if the node that trains also preprocesses",
        examples=["{primary: {instance_type: m5.xlarge}}"],
    )
    training: Annotated[tuple[parts.NodeGroup, ...], AfterValidator(_require_unique_group_names)] = Field(
        default=(),
        strict=False,
        description="a list of node groups",
        examples=["[{instance_type: g5.xlarge, count: 1}]"],
    )
    managed: ManagedSpec | None = Field(
        default=None,
        description="the fields of SageMaker training jobs, with or without node groups",
        examples=["{instance_type: ml.g5.xlarge}"],
    )
    max_dollars: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="the maximum cost of a run in dollars, above 0 and up to 1000000, or nothing for no limit",
        examples=[20],
    )
    share: Literal["efs", "nfs"] | None = Field(
        default=None,
        description="efs or nfs (served by the first GPU node) for a file system that all nodes mount, or nothing",
        examples=["efs"],
    )
    data: parts.DataSpec = Field(
        default=parts.DataSpec(), description="the fields of the data bucket", examples=["{keep: true}"]
    )
    inputs: Annotated[tuple[addresses.InputAddress, ...], AfterValidator(_refuse_nested_inputs)] = Field(
        default=(),
        max_length=addresses.MOST,
        strict=False,
        description=f"a list of at most {addresses.MOST} addresses that nodes read, s3://BUCKET or s3://BUCKET/NAME, "
        f"each of at most {addresses.LONGEST} characters (in NAME letters, digits and _.:/=+@-, no pattern)",
        examples=["[s3://my-reviews/2024/]"],
    )
    guard: parts.GuardSpec = Field(
        default=parts.GuardSpec(), description="the fields of the guard", examples=["{max_hours: 12}"]
    )
    network: parts.NetworkSpec = Field(
        default=parts.NetworkSpec(), description="the fields of the network", examples=["{egress: nat}"]
    )

    @property
    def trainers(self) -> tuple[parts.NodeGroup, ...]:
        """Node groups that train. Each of their GPUs is a rank."""
        return tuple(group for group in self.training if group.role == "train")

    @property
    def readers(self) -> tuple[parts.NodeGroup, ...]:
        """Node groups of readers. Readers have no ranks."""
        return tuple(group for group in self.training if group.role == "read")

    @property
    def has_nodes(self) -> bool:
        """Whether the topology has an EMR cluster or node groups, which need a network."""
        return self.preprocessing is not None or bool(self.training)

    @property
    def gpu_nodes(self) -> int:
        return sum(group.count for group in self.trainers)

    @model_validator(mode="after")
    def _require_a_stage(self) -> Self:
        if self.preprocessing is None and not self.training and self.managed is None:
            raise ValueError("`preprocessing`, `training` and `managed` are missing; add at least one of them.")
        return self

    @model_validator(mode="after")
    def _require_zone_of_subnet(self) -> Self:
        if self.network.subnet and not self.zone:
            raise FieldError(
                f"the `zone` of the subnet is missing; add it, such as `zone: {self.region}b`.", "network", "subnet"
            )
        return self

    @model_validator(mode="after")
    def _require_zone_of_reservation(self) -> Self:
        for index, group in enumerate(self.training):
            if group.reservation and not self.zone:
                raise FieldError(
                    f"the `zone` of the reservation is missing; add it, such as `zone: {self.region}b`.",
                    *("training", index, "reservation"),
                )
        return self

    @field_validator("kms_key")
    @classmethod
    def _require_key_in_region(cls, key: str | None, info: ValidationInfo) -> str | None:
        region = info.data.get("region")
        if key and region and key.split(":")[3] != region:
            raise ValueError(f"'{key}' is in {key.split(':')[3]}; write a key in {region}.")
        return key

    @model_validator(mode="after")
    def _refuse_unused_fields(self) -> Self:
        if self.managed:
            self.managed.require_region(self.region)
        if self.share and not self.training:
            raise FieldError("only node groups mount a share; add `training`, or remove `share`.", "share")
        if self.max_dollars and not (self.training or self.managed):
            raise FieldError("only runs have this limit; add `training` or `managed`, or remove it.", "max_dollars")
        return self

    @model_validator(mode="after")
    def _require_trainers_and_share_for_readers(self) -> Self:
        for index, group in enumerate(self.training):
            if group.role == "train":
                continue
            if not self.trainers:
                raise FieldError(
                    "readers need a group that trains on what they read; add a group with GPUs.",
                    *("training", index, "role"),
                )
            if self.share is None:
                raise FieldError(
                    "readers write their parts into the share; add `share: nfs` or `share: efs`.",
                    *("training", index, "role"),
                )
        return self

    @model_validator(mode="after")
    def _require_one_network_for_all_ranks(self) -> Self:
        for index, group in enumerate(self.training):
            if group.role == "train" and group.efa != self.trainers[0].efa:
                raise FieldError(
                    "either all ranks communicate by EFA or none; write the same `efa` in each group that trains.",
                    *("training", index, "efa" if group.efa else "instance_type"),
                )
        return self

    @field_validator("zone")
    @classmethod
    def _require_zone_in_region(cls, zone: str | None, info: ValidationInfo) -> str | None:
        region = info.data.get("region")
        if zone and region and not re.fullmatch(rf"{region}[a-z]", zone):
            raise ValueError(f"'{zone}' is not a zone of {region}; write one of its zones, such as {region}b.")
        return zone


def instance_types(topology: Topology) -> list[str]:
    """Return the distinct instance types of a topology, in the order of its file."""
    cluster = [name for _, name, _, _ in topology.preprocessing.groups] if topology.preprocessing else []
    return list(dict.fromkeys([*cluster, *(name for group in topology.training for name in group.types)]))


def names_in(folder: Path) -> list[str]:
    """Return the names of the topologies in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def is_file(given: str) -> bool:
    """Return whether `given` is the path of a topology, such as `some/where/NAME.yaml`, and not a name."""
    return Path(given).suffix in _SUFFIXES


def name_of(given: str) -> str:
    """Return the name of a topology. `given` is its name or path."""
    return Path(given).stem if is_file(given) else given


def absolute(given: str) -> str:
    """Return `given` so that it is valid in any working directory: a name unchanged, a path as an absolute path."""
    return str(Path(given).resolve()) if is_file(given) else given


def load(given: str, folder: Path) -> Topology:
    """Read a topology. `given` is a name, which stands for `NAME.yaml` in `folder`, or the path of any file with the
    suffix .yaml or .yml.

    Raises TopologyError, which names the file, line and field.
    """
    name = name_of(given)
    source = _own(Path(given), folder) if is_file(given) else _shipped(name, folder)
    check_deployment(name)
    if "name" in source.data:
        raise source.fault(("name",), "'name' is not a field, because a topology is named by its file.", at_key=True)
    try:
        return Topology.model_validate({**source.data, "name": name})
    except ValidationError as error:
        raise source.invalid(Topology, error) from None


def _own(file: Path, folder: Path) -> document.Document:
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        hint = f"did you mean {file.stem}?" if file.stem in names_in(folder) else "check the path."
        raise TopologyError(f"There is no file {file}; {hint}") from None
    except OSError:  # `read` below reports why
        pass
    return document.read(file, str(file))


def _shipped(name: str, folder: Path) -> document.Document:
    known = names_in(folder)
    if name not in known:
        nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are: {', '.join(known) or 'none'}."
        raise TopologyError(f"There is no topology '{name}' in {folder}/; {hint}")
    return document.read(folder / f"{name}.yaml", f"{folder.name}/{name}.yaml")
