"""The payload of a node has what it imports: packages of Shoal, listed libraries, and nothing else.

A process tries that. It refuses every other library of this environment, also those that are installed as dependencies.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.installed import closure

ROOT = Path(__file__).resolve().parents[1]
READS = "corpus.dataset"  # imports of the trainer when it reads a dataset

# Refuses imports that are not allowed, then imports the modules under test.
IMPORTS = """
import sys

refused, wanted = (set(argument.split()) for argument in sys.argv[1:])

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"{name} is not on this node", name=name)

sys.meta_path.insert(0, Blocker())
for name in sorted(wanted):
    __import__(name)
print(*sorted(sys.modules))
"""


def listed(kind: str, name: str = "requirements") -> set[str]:
    (path,) = (ROOT / "bootstrap").glob(f"{kind}/{name}.txt")
    lines = (line.partition(";")[0].strip() for line in path.read_text().splitlines())
    return {canonicalize_name(Requirement(line).name) for line in lines if line and not line.startswith(("#", "-"))}


def refused(libraries: set[str], packages: set[str]) -> set[str]:
    """Return the top-level modules of libraries that are not allowed, and of our other packages."""
    allowed = closure(libraries)
    found = [path.parent.name for where in ("*", "packages/*/*") for path in ROOT.glob(f"{where}/__init__.py")]
    ours = set(found) - packages
    return ours | {
        module
        for module, owners in metadata.packages_distributions().items()
        if not allowed & {canonicalize_name(owner) for owner in owners} and module not in packages
    }


def imported(modules: Iterable[str], *, libraries: set[str], packages: set[str]) -> set[str]:
    """Import the modules as on a node; return all imported modules."""
    blocked = refused(libraries, packages)
    command = [sys.executable, "-c", IMPORTS, " ".join(blocked), " ".join(modules)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


ZSTD = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"
READING = ("gpu", "gpu inputs")
NODES = {
    "a GPU node": (
        "trainer.__main__ trainer.start trainer.classification.task trainer.classification.model_folder "
        f"trainer.classification.models.lstm trainer.launch pydantic {READS}",
        ("gpu",),
        "common corpus shoal_balance trainer",
    ),
    "its agent": (
        "bootstrap.node.__main__ bootstrap.node.stage boto3 pydantic",
        ("gpu",),
        "bootstrap common corpus shoal_balance trainer",
    ),
    "a node that reads texts": (
        f"bootstrap.node.stage jobs.training boto3 orjson pyarrow.parquet {ZSTD} nltk.tokenize",
        READING,
        "bootstrap common corpus jobs shoal_balance trainer",
    ),
    "a node of EMR": (
        "jobs.dataset bootstrap.node.step bootstrap.node.cancellation pydantic",
        ("emr",),
        "bootstrap common corpus jobs",
    ),
}
"""Imports of nodes, lists of libraries that they install, and packages of Shoal that they download."""


@pytest.mark.parametrize("node", NODES)
def test_a_node_needs_only_its_downloads_its_image_and_torch_only_for_training(node: str) -> None:
    modules, lists, packages = NODES[node]
    image = {"torch", "numpy"} if node == "a GPU node" else {"numpy"} if lists[0] == "gpu" else set()
    libraries = image.union(*(listed(*each.split()) for each in lists))
    found = imported(modules.split(), libraries=libraries, packages=set(packages.split()))
    assert ("torch" in found) is (node == "a GPU node")
    assert ("h5py" in found) is (node != "its agent")
    if lists == READING:
        assert closure(libraries) <= libraries  # pip installs these without dependencies


# Unpacks the files for a host into the given folder.
UNPACKS = """
import io, sys, zipfile
from shoal.ssh import payload

zipfile.ZipFile(io.BytesIO(payload._packed())).extractall(sys.argv[1])
"""


@pytest.mark.parametrize("installed", [False, True])
def test_a_host_gets_the_packages_of_a_gpu_node_from_a_checkout_or_an_installation(
    tmp_path: Path, installed: bool
) -> None:
    roots = [ROOT, ROOT / "packages" / "balance"]
    if installed:  # all packages are in one folder
        roots = [tmp_path / "site"]
        roots[0].mkdir()
        for name in ("bootstrap", "common", "corpus", "infra", "trainer", "packages/balance/shoal_balance"):
            (roots[0] / Path(name).name).symlink_to(ROOT / name)
    host = tmp_path / "host"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    subprocess.run([sys.executable, "-P", "-c", UNPACKS, host], cwd=tmp_path, env=environment, check=True)
    assert {path.name for path in host.iterdir()} == set(NODES["its agent"][2].split())
    found = "import shoal_balance, trainer.config, bootstrap.node.host; print(shoal_balance.__file__)"
    environment["PYTHONPATH"] = str(host)
    done = subprocess.run(
        [sys.executable, "-P", "-c", found], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert Path(done.stdout.strip()).is_relative_to(host)


@pytest.mark.parametrize(("kind", "missing"), [("gpu", "h5py"), ("emr", "mrjob")])
def test_a_library_missing_from_a_list_is_detected(kind: str, missing: str) -> None:
    modules, packages = {
        "gpu": (("trainer.start", "trainer.classification.task", READS), "common corpus shoal_balance trainer"),
        "emr": (("jobs.dataset",), "common corpus jobs"),
    }[kind]
    with pytest.raises(AssertionError, match=f"{missing} is not on this node"):
        imported(modules, libraries={"torch", "numpy"} | listed(kind) - {missing}, packages=set(packages.split()))
