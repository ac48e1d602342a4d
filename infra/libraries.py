"""Archives of the libraries that nodes install: their paths in a checkout, and the commands that create them.

`make setup` does not create the archive for reading texts on GPU nodes and readers. This archive is twenty times as
large as the other archives, and few topologies need it. Report a missing archive as a message, also during CDK
synthesis.
"""

from collections.abc import Iterator
from pathlib import Path

from infra import parts
from infra.topology import Topology

_FOLDER = Path("build", "wheels")
_TO_READ = _FOLDER / "gpu-inputs.zip"


def of_cluster(spec: parts.PreprocessingSpec) -> Path:
    """Return the path of the archive for EMR nodes, relative to the repository."""
    return _FOLDER / f"emr-{spec.architecture}.zip"


def of_gpu_nodes(spec: Topology) -> Path:
    """Return the path of the archive for GPU nodes and readers, relative to the repository."""
    return _TO_READ if reads_texts(spec) else _FOLDER / "gpu.zip"


def reads_texts(spec: Topology) -> bool:
    """Return whether nodes with GPUs, or readers, read texts."""
    return bool(spec.inputs or spec.readers or spec.preprocesses_on_node)


def describe_missing(archive: Path) -> str:
    """Return the message for a missing archive, without its full stop."""
    command = "make inputs" if archive == _TO_READ else "make setup"
    return f"{archive} is missing; run `{command}` in a checkout of Shoal, and deploy from there"


def missing(spec: Topology, root: Path) -> Iterator[Path]:
    """Yield the archives that the topology's nodes install but that are missing in the repository at `root`."""
    if spec.preprocessing and not (root / of_cluster(spec.preprocessing)).exists():
        yield of_cluster(spec.preprocessing)
    installs = spec.training or (spec.managed and not spec.managed.image)
    if installs and not (root / of_gpu_nodes(spec)).exists():
        yield of_gpu_nodes(spec)
