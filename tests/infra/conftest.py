"""What the tests of the stack share: a small repository, and a way to build a stack from it.

CDK runs in the Node of the virtual environment, also where the environment is not activated.
"""

import os
import sys
from pathlib import Path

import pytest

# Before the first import of CDK, which starts Node.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

from aws_cdk import App

from app import flags
from infra.stack import ShoalStack
from infra.topology import Topology
from tests.infra.handled import Handled
from tests.infra.templates import ResourcesOf, Synthesise, Templates
from tests.infra.variants import IN_OTHER_NETWORKS, TOPOLOGIES, bounded, of


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of which only part belongs on a node."""
    folder = tmp_path_factory.mktemp("repository")
    for name in (
        "corpus/text.py",
        "corpus/__pycache__/text.cpython-311.pyc",
        "jobs/encode.py",
        "jobs/words.txt",
        "trainer/loop.py",
        "trainer/classification/models/lstm.py",
        "trainer/.cache/x",
        "infra/stack.py",
        "tests/corpus/test_text.py",
        "node_modules/corpus/x.js",
        "app.py",
        "bootstrap/preprocessing/emr/install.sh",
        "bootstrap/nodes/gpu/boot.sh",
        "build/wheels/emr-x86_64.zip",
        "build/wheels/emr-arm64.zip",
        "build/wheels/gpu.zip",
        "build/wheels/gpu-inputs.zip",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


@pytest.fixture(scope="session")
def synthesise(root: Path) -> Synthesise:
    """Builds the stack of a topology for the deployment `mine` of `ada`; its assembly goes to the given folder."""

    def build(
        spec: Topology,
        out: Path,
        *,
        deployment: str = "mine",
        generation: int = 1,
        emulated: bool = True,
        repository: Path = root,
    ) -> ShoalStack:
        return ShoalStack(
            App(outdir=str(out), analytics_reporting=False, builtin_cloud_formation_validation=False, context=flags()),
            spec=spec,
            deployment=deployment,
            owner="ada",
            generation=generation,
            root=repository,
            emulated=emulated,
        )

    return build


@pytest.fixture(scope="session")
def templates(synthesise: Synthesise, tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Templates of topologies, of which processes that test in parallel synthesise each once."""
    own = tmp_path_factory.getbasetemp()
    return Templates((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "templates", synthesise)


@pytest.fixture(scope="session")
def resources_of(templates: Templates) -> ResourcesOf:
    """The resources of a topology with these fields."""
    return lambda **fields: templates.resources(of(**fields))


@pytest.fixture(scope="session")
def handled(templates: Templates) -> dict[str, Handled]:
    """The stacks of all topologies, whose roles have the permissions boundary, by the topologies' names."""
    return {
        spec.name: Handled(spec.name, templates(bounded(spec), deployment=spec.name))
        for spec in [*TOPOLOGIES, *IN_OTHER_NETWORKS]
    }
