"""Each distribution of `packages/` works alone: its README's example runs next to modules with names of Shoal's."""

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.installed import install, plain
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "packages"
COMMANDS = {
    "balance": [
        ("python -m torch.distributed.run --standalone --nproc-per-node=2 test_example.py", "rows of each rank: [")
    ],
    "guard": [("python test_example.py", "")],
    "local-aws": [("python -m pytest -q -p no:cacheprovider test_example.py", "1 passed")],
}
"""For each package, the commands of its example with a part of their output.

`test_example.py` is the first Python block of its README.
"""

BESIDE = {"local-aws": ("mrjob", "pytest")}
"""For each package, libraries that only its example needs."""


@pytest.fixture(scope="module", params=list(COMMANDS))
def package(request: pytest.FixtureRequest) -> Path:
    return PACKAGES / str(request.param)


@pytest.fixture
def installed(package: Path, tmp_path: Path) -> Path:
    """Return the programs of an environment with the package, its dependencies, those of its example, and pip."""
    source = tmp_path / "source"
    shutil.copytree(package, source, ignore=shutil.ignore_patterns("tests", "build", "*.egg-info"))
    return install(source, tmp_path / "environment", [*dependencies(package), *BESIDE.get(package.name, ())])


def dependencies(package: Path) -> list[str]:
    found: list[str] = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    return found


@pytest.mark.slow
def test_it_works_without_shoal_next_to_modules_of_the_same_names(
    package: Path, installed: Path, tmp_path: Path
) -> None:
    assert list(installed.parent.glob("lib/python*/site-packages/shoal_*/py.typed"))
    project = tmp_path / "project"
    for name in ("common/__init__.py", "infra.py", "trainer/__init__.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"raise ImportError('{name} is not for the package')\n")
    readme = (package / "README.md").read_text("utf-8")
    example = re.search(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert example is not None
    (project / "test_example.py").write_text(example[1])
    path = os.pathsep.join((str(installed), os.environ["PATH"]))
    (project / "mrjob.conf").write_text("runners: {emr: {check_cluster_every: 1}}")  # it waits 30 seconds by default
    for command, printed in COMMANDS[package.name]:
        words = command.split()
        words[0] = str(installed / words[0])
        done = subprocess.run(
            words,
            cwd=project,
            env=plain() | {"PATH": path, "MRJOB_CONF": str(project / "mrjob.conf")},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert printed in done.stdout


def test_its_dependencies_are_those_that_shoal_is_tested_with(package: Path) -> None:
    assert [each for each in map(Requirement, dependencies(package)) if version(each.name) not in each.specifier] == []
