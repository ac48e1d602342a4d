"""What the tests of the stack share: a small repository, and a way to build a stack from it.

CDK runs in the Node of the virtual environment, also where the environment is not activated.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Before the first import of CDK, which starts Node.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

from aws_cdk import App

from app import flags
from infra import policies
from infra.stack import ShoalStack
from infra.topology import Topology, stack_name
from tests.infra.handled import ACCOUNT, Handled
from tests.infra.variants import IN_OTHER_NETWORKS, TOPOLOGIES


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
def synthesise(root: Path) -> Callable[..., ShoalStack]:
    """Builds the stack of a topology for the deployment `mine` of `ada`; its assembly goes to the given folder."""

    def build(
        spec: Topology, out: Path, *, generation: int = 1, emulated: bool = True, repository: Path = root
    ) -> ShoalStack:
        return ShoalStack(
            App(outdir=str(out), analytics_reporting=False, builtin_cloud_formation_validation=False, context=flags()),
            spec=spec,
            deployment="mine",
            owner="ada",
            generation=generation,
            root=repository,
            emulated=emulated,
        )

    return build


@pytest.fixture(scope="session")
def handled(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Handled]:
    """The stacks of all topologies, whose roles have the permissions boundary, by the topologies' names."""
    out, specs = tmp_path_factory.mktemp("bounded"), [*TOPOLOGIES, *IN_OTHER_NETWORKS]
    app = App(outdir=str(out), analytics_reporting=False, builtin_cloud_formation_validation=False, context=flags())
    bound = {"permissions_boundary": f"arn:aws:iam::{ACCOUNT}:policy/{policies.BOUNDARY}"}
    for spec in specs:
        own = spec.model_copy(update=bound)
        ShoalStack(app, spec=own, deployment=spec.name, owner="ada", generation=1, root=root, emulated=True)
    app.synth()
    stacks = {spec.name: stack_name(spec.name) for spec in specs}
    return {
        name: Handled(stack, json.loads((out / f"{stack}.template.json").read_text("utf-8")))
        for name, stack in stacks.items()
    }
