"""Fixtures for tests of the stack: a small repository, and stacks built from it.

CDK runs in the Node of the virtual environment, also where the environment is not activated.
"""

import os
import sys
from functools import cache, partial
from pathlib import Path

import boto3
import pytest

# Before the first import of CDK, which starts Node.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

from shoal_guard.handlers.guard import main

from tests.infra.handled import Handled
from tests.infra.templates import Templates
from tests.infra.variants import IN_OTHER_NETWORKS, TOPOLOGIES, bounded

OF_REPOSITORY = Path(__file__).with_name("repository.txt").read_text().split()


def fill(folder):
    """Create a repository with files that nodes need and files that they do not need."""
    for name in OF_REPOSITORY:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def stack_of(checkout, spec, out, **options):
    """Return the stack of a topology for the deployment `mine` of `ada`, with its assembly in the given folder."""
    from aws_cdk import App

    from app import flags
    from infra.stack import ShoalStack

    quick = {"analytics_reporting": False, "builtin_cloud_formation_validation": False}
    usual = {"deployment": "mine", "owner": "ada", "generation": 1, "root": checkout, "emulated": True}
    return ShoalStack(App(outdir=str(out), context=flags(), **quick), spec=spec, **{**usual, **options})


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="session")
def synthesise(root):
    return partial(stack_of, root)


@pytest.fixture(scope="session")
def templates(synthesise, tmp_path_factory):
    """Templates of topologies. Parallel test processes synthesise each only once."""
    own = tmp_path_factory.getbasetemp()
    return Templates((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "templates", synthesise)


@pytest.fixture(scope="session")
def handled(templates):
    """Stacks of all topologies with the permissions boundary, by the topologies' names."""
    return {
        spec.name: Handled(spec, templates(bounded(spec), deployment=spec.name))
        for spec in [*TOPOLOGIES, *IN_OTHER_NETWORKS]
    }


@pytest.fixture(scope="module")
def clients(aws):
    """Return a function that returns boto3's client for a service, and makes each client once."""
    main._client.cache_clear()
    return cache(boto3.client)


@pytest.fixture
def deploy(clients, tmp_path):
    """Return a function that deploys a stack with a guard, see `Deployed`."""
    from tests.infra.guarded import Deployed

    return partial(Deployed, clients, tmp_path)
