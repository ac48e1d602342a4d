"""The locks have all requested libraries, their dependencies, and hashes; `make lock` writes them."""

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "locks"
DIRECT = {
    "shoal": ["requirements.txt"],
    "dev": ["requirements.txt", "requirements-dev.txt"],
    "bench": ["requirements.txt", "requirements-dev.txt", "requirements-bench.txt"],
    "checkov": ["requirements-checkov.txt"],
    "emr": ["bootstrap/emr/requirements.txt"],
    "gpu": ["bootstrap/gpu/requirements.txt"],
    "gpu-inputs": ["bootstrap/gpu/inputs.txt"],
    "installer": ["bootstrap/emr/installer.txt"],
}
"""Lists of requirements for each lock."""

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
APART = "torch"


def direct(name: str) -> list[Requirement]:
    lines = (line for path in DIRECT[name] for line in (ROOT / path).read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith(("#", "-r "))]


def entries(name: str) -> list[Requirement]:
    return [
        Requirement(line.rstrip(" \\")) for line in (LOCKS / f"{name}.txt").read_text().splitlines() if "==" in line
    ]


def versions(name: str, python: str) -> dict[str, str]:
    """Return the version of each library that a lock installs on Linux, by its name."""
    machine = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
    found: dict[str, str] = {}
    for entry in entries(name):
        if entry.marker is None or entry.marker.evaluate(machine):
            assert found.setdefault(canonicalize_name(entry.name), pinned(entry)) == pinned(entry), entry
    return found


def pinned(requirement: Requirement) -> str:
    (one,) = requirement.specifier
    assert one.operator == "==", requirement
    return one.version


def test_locks_and_lists_correspond() -> None:
    assert {path.name for path in LOCKS.iterdir()} == {f"{name}.txt" for name in DIRECT}
    found = (*ROOT.glob("requirements*.txt"), *ROOT.glob("bootstrap/*/*.txt"))
    lists = {path.relative_to(ROOT).as_posix() for path in found}
    assert {path for paths in DIRECT.values() for path in paths} == lists
    recipe = (ROOT / "Makefile").read_text()
    assert [
        name for name in DIRECT if f"{DIRECT[name][-1]} " not in recipe or f"-o locks/{name}.txt" not in recipe
    ] == []


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", DIRECT)
def test_a_lock_has_the_requested_versions(name: str, python: str) -> None:
    locked = versions(name, python)
    machine = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
    asked = [one for one in direct(name) if one.name != APART and (one.marker is None or one.marker.evaluate(machine))]
    assert {one.name: locked.get(canonicalize_name(one.name)) for one in asked} == {
        one.name: pinned(one) for one in asked
    }


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("part", "whole"),
    [("shoal", "dev"), ("shoal", "bench"), ("emr", "shoal"), ("gpu", "shoal"), ("gpu-inputs", "shoal")],
)
def test_nodes_and_developers_have_the_versions_of_shoal(part: str, whole: str, python: str) -> None:
    assert versions(part, python).items() <= versions(whole, python).items()


@pytest.mark.parametrize("name", ["shoal", "dev", "emr"])
def test_a_lock_has_the_dependencies_of_its_libraries(name: str) -> None:
    """For each library installed here, the lock has its dependencies in versions that it accepts."""
    python = ".".join(map(str, sys.version_info[:2]))
    locked = versions(name, python)
    for library, version in locked.items():
        try:
            here = metadata.distribution(library)
        except metadata.PackageNotFoundError:
            continue
        if Version(here.version) != Version(version):
            continue
        for line in here.requires or ():
            need = Requirement(line)
            if need.name != APART and (need.marker is None or need.marker.evaluate({"extra": ""})):
                got = locked.get(canonicalize_name(need.name))
                assert got is not None, f"{library} needs {need}"
                assert need.specifier.contains(got, prereleases=True), f"{library} needs {need}, and {got} is locked"


def test_dependencies_of_torch_are_locked() -> None:
    """The libraries of NVIDIA are excluded: only some builds need them."""
    locked = versions("shoal", PYTHONS[0])
    needs = [Requirement(line) for line in metadata.requires(APART) or ()]
    plain = [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    others = [need for need in plain if not re.match(r"nvidia-|cuda-|triton", need.name)]
    assert {need.name for need in others} <= locked.keys()
    assert [need for need in others if locked[need.name] not in need.specifier] == []


@pytest.mark.parametrize("name", DIRECT)
def test_every_entry_has_hashes_and_no_lock_has_an_address(name: str) -> None:
    text = (LOCKS / f"{name}.txt").read_text()
    for block in re.split(r"\n(?=[a-z0-9])", text.partition("\n")[2]):
        assert block.startswith("#") or re.match(r"\S+==\S+[^\n]* \\\n    --hash=sha256:[0-9a-f]{64}", block), block
    assert re.findall(r"://|file:|^--(?!hash)|^ *-[a-z] |index-url", text, re.MULTILINE) == []
    assert APART not in {entry.name for entry in entries(name)}
    assert not [entry.name for entry in entries(name) if entry.name.startswith("nvidia-")]
