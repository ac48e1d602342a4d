"""The archives of libraries that nodes install: where a checkout has them, and which command makes each.

Setup makes all but one: the libraries by which GPU nodes and readers read texts are twenty times as large as the
others, and few topologies have inputs or readers. So an archive may be missing; say so by a sentence, also where the
stack is synthesised.
"""

from collections.abc import Iterator
from pathlib import Path

from infra import parts
from infra.topology import Topology

_FOLDER = Path("build", "wheels")
_TO_READ = _FOLDER / "gpu-inputs.zip"


def of_cluster(spec: parts.PreprocessingSpec) -> Path:
    """The archive for the nodes of an EMR cluster, below the repository's root."""
    return _FOLDER / f"emr-{spec.architecture}.zip"


def of_gpu_nodes(spec: Topology) -> Path:
    """The archive for GPU nodes and readers, below the repository's root; some read texts: with inputs or readers, or
    where the node preprocesses."""
    return _TO_READ if spec.inputs or spec.readers or spec.preprocesses_on_node else _FOLDER / "gpu.zip"


def describe_missing(archive: Path) -> str:
    """The sentence for an archive that is not there, without its full stop."""
    command = "make inputs" if archive == _TO_READ else "make setup"
    return f"{archive} is missing; run `{command}` in a checkout of Shoal, and deploy from there"


def missing(spec: Topology, root: Path) -> Iterator[Path]:
    """The archives that the topology's nodes install and the repository at `root` does not have."""
    if spec.preprocessing and not (root / of_cluster(spec.preprocessing)).exists():
        yield of_cluster(spec.preprocessing)
    installs = spec.training or (spec.managed and not spec.managed.image)
    if installs and not (root / of_gpu_nodes(spec)).exists():
        yield of_gpu_nodes(spec)
