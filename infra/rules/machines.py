"""Rules on what machines can run: types, GPUs, PyTorch builds, EMR releases.

A PyTorch build must support all GPUs of a topology, and the machine image must contain that build: two rules.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from infra import catalog, releases
from infra.catalog import InstanceType
from infra.parts import NodeGroup
from infra.rules import Rule, group_label
from infra.topology import Topology

_ENDING_SOON = datetime.timedelta(days=90)


class RetiredType(Rule):
    """AWS no longer starts machines of the type."""

    level = "error"

    def check(self, topology: Topology) -> Iterator[str]:
        """Each field that names one."""
        for field, kind in _types(topology):
            if kind.retired:
                yield (
                    f"{field}: AWS retired {kind.name} ({kind.retired.since}) and starts none; in "
                    f"{topology.name}.yaml take {kind.retired.successor}, today's equivalent."
                )


class NoTorchBuild(Rule):
    """All ranks need the same PyTorch build, and no build supports all of these GPUs."""

    level = "error"

    def check(self, topology: Topology) -> Iterator[str]:
        """The GPUs, each with the builds that support it."""
        capabilities = [gpu.capability for _, gpu in _gpus(topology)]
        if not capabilities or catalog.builds_for(capabilities):
            return
        kinds = {gpu.name: gpu.capability for _, gpu in _gpus(topology)}
        ranges = "; ".join(f"{name} ({capability}): {_range(capability)}" for name, capability in kinds.items())
        yield (
            f"training: no PyTorch runs on all of these GPUs, and all nodes need the same one ({ranges}); "
            "leave out the groups of one kind."
        )


class ImageTooNew(Rule):
    """The machine image contains the PyTorch that runs, and that must support every GPU."""

    level = "error"

    def check(self, topology: Topology) -> Iterator[str]:
        """Each group whose GPU is not supported by the PyTorch of an image, and images that differ in their PyTorch."""
        images = {catalog.image_of(group.instance_type).name for group in topology.training if _image(group)}
        builds = {(catalog.catalog().images[name].torch, catalog.catalog().images[name].cuda) for name in images}
        if len(builds) > 1:
            contained = " and ".join(f"PyTorch {torch} with CUDA {cuda}" for torch, cuda in sorted(builds))
            yield (
                f"training: the groups' machine images contain {contained}, but all nodes need the same PyTorch; leave "
                "out the groups of one kind."
            )
        for build in catalog.catalog().builds:
            if (build.torch, build.cuda) not in builds:
                continue
            for number, group in enumerate(topology.training, 1):
                gpu = catalog.find(group.instance_type).gpu
                if _image(group) and gpu and not build.supports(gpu.capability):
                    yield (
                        f"{group_label(number, group)}: the machine image contains PyTorch {build.torch} with CUDA "
                        f"{build.cuda}, which does not run on {gpu.name} (compute capability {gpu.capability}); take "
                        "another instance type."
                    )


class ReleaseTooOld(Rule):
    """The release has no Python 3.11."""

    level = "error"

    def check(self, topology: Topology) -> Iterator[str]:
        """The preprocessing's release."""
        release = topology.preprocessing.release if topology.preprocessing else None
        if release and not releases.has_python(release):
            yield (
                f"preprocessing, release: {release} has no Python 3.11 on its nodes; write {releases.newest()}, "
                f"or another from {releases.FIRST} on."
            )


@dataclass(frozen=True)
class ReleaseEnding(Rule):
    """AWS's support of the release has ended, or ends within three months; AWS starts it nevertheless."""

    level = "warning"
    today: datetime.date

    def check(self, topology: Topology) -> Iterator[str]:
        """The preprocessing's release."""
        release = topology.preprocessing.release if topology.preprocessing else None
        end = releases.support_ends(release) if release else None
        if end and end <= self.today + _ENDING_SOON:
            ends = "ended" if end <= self.today else "ends"
            yield f"preprocessing, release: AWS's support of {release} {ends} on {end}; {releases.newest()} is newer."


def _types(topology: Topology) -> Iterator[tuple[str, InstanceType]]:
    """Every field that names an instance type, with its label for messages."""
    preprocessing = topology.preprocessing
    if preprocessing:
        yield "preprocessing, primary", catalog.find(preprocessing.primary.instance_type)
        for role, workers in preprocessing.workers:
            yield f"preprocessing, {role}", catalog.find(workers.instance_type)
    for number, group in enumerate(topology.training, 1):
        yield group_label(number, group), catalog.find(group.instance_type)


def _gpus(topology: Topology) -> list[tuple[NodeGroup, catalog.Gpu]]:
    found = ((group, catalog.find(group.instance_type).gpu) for group in topology.training)
    return [(group, gpu) for group, gpu in found if gpu]


def _image(group: NodeGroup) -> str | None:
    return catalog.find(group.instance_type).image


def _range(capability: str) -> str:
    found = [f"PyTorch {build.torch} with CUDA {build.cuda}" for build in catalog.builds_for([capability])]
    return found[0] if len(found) == 1 else f"{found[-1]} to {found[0]}"
