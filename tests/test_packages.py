"""Each distribution of `packages/`, installed alone: it runs the example of its README in a folder with modules of its
own that have names of Shoal's."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "packages"
COMMANDS = {
    "balance": [
        ("python -m torch.distributed.run --standalone --nproc-per-node=2 test_example.py", "rows of each rank: [")
    ],
    "guard": [("python test_example.py", ""), ("python -m shoal_guard --help", "STACK")],
    "local-aws": [
        ("python -m pytest -q -p no:cacheprovider test_example.py", "1 passed"),
        ("shoal-local-aws -- python -m mrjob.examples.mr_word_freq_count -r emr infra.py", '"raise"\t1\n'),
    ],
}
"""By package: what is run where the first Python of its README is `test_example.py`, and what this prints."""


@pytest.fixture(scope="module", params=list(COMMANDS))
def package(request: pytest.FixtureRequest) -> Path:
    return PACKAGES / str(request.param)


@pytest.fixture
def installed(package: Path, tmp_path: Path) -> Path:
    """The programs of an environment that has the package, and of the tests' environment all that is not Shoal's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "environment"], check=True)
    (own,) = (tmp_path / "environment" / "lib").glob("python*/site-packages")
    others = tmp_path / "others"
    others.mkdir()
    for found in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.match(r"(__editable__\w*)?shoal", found.name):
            (others / found.name).symlink_to(found)
    (own / "others.pth").write_text(f"{others}\n")
    shutil.copytree(package, tmp_path / "source", ignore=shutil.ignore_patterns("tests", "build", "*.egg-info"))
    python = tmp_path / "environment" / "bin" / "python"
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run([python, "-m", "pip", "install", *options, tmp_path / "source"], env=plain(), check=True)
    return python.parent


def plain() -> dict[str, str]:
    """The environment without what leads Python, pytest or AWS to this repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "AWS_"))}


@pytest.mark.slow
def test_it_works_without_shoal_beside_modules_of_the_same_names(
    package: Path, installed: Path, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    for name in ("common/__init__.py", "infra.py", "trainer/__init__.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"raise ImportError('{name} is not for the package')\n")
    readme = (package / "README.md").read_text("utf-8")
    example = re.search(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert example is not None
    (project / "test_example.py").write_text(example[1])
    path = os.pathsep.join((str(installed), os.environ["PATH"]))
    for command, printed in COMMANDS[package.name]:
        words = command.split()
        words[0] = str(installed / words[0])
        done = subprocess.run(
            words,
            cwd=project,
            env=plain() | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert printed in done.stdout


def test_what_it_asks_for_is_what_shoal_is_tested_with(package: Path) -> None:
    asked = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert [each for each in map(Requirement, asked) if version(each.name) not in each.specifier] == []
