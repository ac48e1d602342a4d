"""Installs a distribution into an empty environment, with only its declared dependencies."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def install(source: Path, environment: Path, dependencies: Iterable[str]) -> Path:
    """Create an environment with the distribution in the folder `source`, and return its folder of programs.

    The dependencies are those of `empty_environment`.
    """
    python = empty_environment(environment, [*dependencies, "pip", "setuptools"])
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run([python, "-m", "pip", "install", *options, source], env=plain(), check=True)
    return python.parent


def empty_environment(environment: Path, dependencies: Iterable[str]) -> Path:
    """Create an environment with only some distributions, and return its interpreter.

    The dependencies, and those that they declare, are links to the installed ones of this environment: pip would
    unpack gigabytes.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    others = environment / "others"
    others.mkdir()
    for name in files_of(dependencies):
        (others / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)
    (packages / "others.pth").write_text(f"{others}\n")
    return environment / "bin" / "python"


def files_of(requirements: Iterable[str]) -> set[str]:
    """Return the files and folders in site-packages of these distributions and their dependencies."""
    found = (distribution(name).files or () for name in closure(requirements))
    return {file.parts[0] for files in found for file in files} - {"..", "__pycache__"}


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the canonical names of these distributions and their dependencies, as far as they are installed here: a
    library of another build of torch is left out."""
    waiting, seen, names = [*map(Requirement, requirements)], set[str](), set[str]()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        try:
            needed = map(Requirement, distribution(requirement.name).requires or ())
        except PackageNotFoundError:
            continue
        extras = ("", *requirement.extras)
        waiting += [
            each
            for each in needed
            if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
        names.add(canonicalize_name(requirement.name))
    return names


def plain() -> dict[str, str]:
    """Return the environment without variables that lead Python, pytest or AWS to this repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "AWS_"))}
