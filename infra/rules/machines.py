"""Rules for instance types, GPUs, PyTorch builds, EMR releases and images.

One rule checks that some PyTorch build supports all GPUs of a topology. Another rule checks that all machine images
contain the same build.
"""

import datetime
from collections.abc import Iterator

from infra import catalog, managed_spec
from infra.catalog import InstanceType
from infra.rules import PreflightInput, group_label
from infra.topology import Topology

_ENDING_SOON = datetime.timedelta(days=60)

# Source: "supported lifecycle" and "application versions" of each release in the Amazon EMR release guide. AWS still
# starts releases after the end of their support.
FIRST_RELEASE = "emr-7.10.0"
"""First release with S3A. Earlier releases use EMRFS, which writes an object NAME_$folder$ for each folder. The object
for `work/` is outside the prefixes that a cluster is allowed to write. (Release guide, "EMR File System (EMRFS)" and
"Amazon EMR 7.10.0 - Hive release notes", read on 2026-11-29.) The nodes have Python 3.11 since release 7.1."""

_SUPPORT_ENDS = {
    "emr-7.10.0": datetime.date(2027, 8, 16),
    "emr-7.13.0": datetime.date(2028, 4, 22),
    "emr-7.14.0": datetime.date(2028, 9, 9),
}
"""Days of "End of support" by release, from the pages "Amazon EMR release 7.x.0", read on 2026-11-29. Support for
earlier releases ends earlier: for 7.3 on 2026-10-16, and for 7.4 on 2026-11-13."""


def retired_type(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem for each field with an instance type that AWS no longer starts."""
    for field, kind in _types(plan.topology):
        if kind.retired:
            yield (
                f"{field}: AWS retired {kind.name} ({kind.retired.since}) and no longer starts it; in "
                f"{plan.topology.name}.yaml use {kind.retired.successor}, its current equivalent."
            )


def no_torch_build(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if no PyTorch build supports all GPUs of the topology, because all ranks need the same build."""
    gpus = [gpu for group in plan.topology.training for name in group.types if (gpu := catalog.find(name).gpu)]
    capabilities = [gpu.capability for gpu in gpus]
    if not capabilities or catalog.builds_for(capabilities):
        return
    kinds = {gpu.name: gpu.capability for gpu in gpus}
    ranges = "; ".join(f"{name} ({capability}): {_range(capability)}" for name, capability in kinds.items())
    yield (
        f"training: all nodes need the same PyTorch build, and no build supports all of these GPUs ({ranges}); "
        "remove the groups of one GPU kind."
    )


def image_too_new(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the machine images contain different PyTorch builds. Also yield a problem for each group with
    a GPU that the image's build does not support."""
    images = [catalog.image_of(kind.name) for _, kind in _with_image(plan.topology)]
    builds = {(image.torch, image.cuda) for image in images}
    if len(builds) > 1:
        contained = " and ".join(f"PyTorch {torch} with CUDA {cuda}" for torch, cuda in sorted(builds))
        yield (
            f"training: the groups' machine images contain {contained}, but all nodes need the same build; "
            "remove the groups of one kind."
        )
    for build in catalog.catalog().builds:
        if (build.torch, build.cuda) not in builds:
            continue
        for label, kind in _with_image(plan.topology):
            if kind.gpu and not build.supports(kind.gpu.capability):
                yield (
                    f"{label}: the machine image contains PyTorch {build.torch} with CUDA {build.cuda}, which does not "
                    f"run on {kind.gpu.name} (compute capability {kind.gpu.capability}); use a different instance type."
                )


def release_too_old(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem if the EMR release writes S3 objects that a cluster is not allowed to write."""
    release = plan.topology.preprocessing.release if plan.topology.preprocessing else None
    if release and not _runs_jobs(release):
        yield (
            f"preprocessing, release: {release} writes S3 objects that the cluster is not allowed to write; "
            f"use {newest_release()}, or any release from {FIRST_RELEASE} on."
        )


def support_ending(plan: PreflightInput) -> Iterator[str]:
    """Yield a problem for each release or image of AWS if its support has ended or ends within 60 days. AWS still
    starts it."""
    for supported, end, advice in supported_by_aws(plan.topology):
        if end <= plan.today + _ENDING_SOON:
            yield f"{supported} {'ended' if end <= plan.today else 'ends'} on {end}; {advice}."


def supported_by_aws(topology: Topology) -> Iterator[tuple[str, datetime.date, str]]:
    """Yield the EMR release and AWS's images that the topology uses, each with the end of its support and advice."""
    release = topology.preprocessing.release if topology.preprocessing else None
    if release and (end := support_ends(release)):
        yield f"preprocessing, release: AWS's support for {release}", end, f"{newest_release()} is newer"
    advice = "install a newer version of Shoal, or name another image in `image`"
    images = {catalog.image_of(kind.name).name for _, kind in _with_image(topology)}
    for image in (catalog.catalog().images[name] for name in sorted(images)):
        yield f"training: AWS's support for its machine image with PyTorch {image.torch}", image.support_ends, advice
    if topology.managed and not topology.managed.image:
        yield f"managed: AWS's support for its image {managed_spec.TAG}", managed_spec.TAG_SUPPORT_ENDS, advice


def _types(topology: Topology) -> Iterator[tuple[str, InstanceType]]:
    """Yield a pair of label and instance type for each field with an instance type."""
    preprocessing = topology.preprocessing
    if preprocessing:
        yield "preprocessing, primary", catalog.find(preprocessing.primary.instance_type)
        for role, workers in preprocessing.workers:
            yield f"preprocessing, {role}", catalog.find(workers.instance_type)
    for number, group in enumerate(topology.training, 1):
        for name in group.types:
            yield group_label(number, group), catalog.find(name)


def _with_image(topology: Topology) -> Iterator[tuple[str, InstanceType]]:
    """Yield a pair of label and instance type for each node group with AWS's image. Shoal does not know what a user's
    image contains."""
    for number, group in enumerate(topology.training, 1):
        for kind in map(catalog.find, group.types):
            if kind.image and not group.image:
                yield group_label(number, group), kind


def _range(capability: str) -> str:
    found = [f"PyTorch {build.torch} with CUDA {build.cuda}" for build in catalog.builds_for([capability])]
    return found[0] if len(found) == 1 else f"{found[-1]} to {found[0]}"


def newest_release() -> str:
    return max(_SUPPORT_ENDS, key=_version)


def _runs_jobs(release: str) -> bool:
    """Return whether the preprocessing jobs run on this EMR release."""
    return _version(release) >= _version(FIRST_RELEASE)


def support_ends(release: str) -> datetime.date | None:
    """Return the day on which AWS's support for an EMR release ends, or None if the release is newer than the known
    releases.

    For a release that is not listed, return the day of the next listed release, because the support ends no later.
    """
    later = [each for each in _SUPPORT_ENDS if _version(each) >= _version(release)]
    return _SUPPORT_ENDS[min(later, key=_version)] if later else None


def _version(release: str) -> tuple[int, ...]:
    """Return a sort key that places 7.10.0 after 7.9.0."""
    return tuple(map(int, release.removeprefix("emr-").split(".")))
