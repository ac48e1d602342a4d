"""The project's files agree with each other."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.site import PAGES

ROOT = Path(__file__).parents[1]
OF_NODES = ("bootstrap/preprocessing/emr", "bootstrap/nodes/gpu")
"""Folders of the code that nodes run first."""
OF_BROWSER = ("tests/browser/package-lock.json", "tests/browser/unpack.mjs")


def pins(name: str) -> dict[str, str]:
    lines = (line.split(";")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return dict(re.split(r"\[.*\]==|==", line) for line in lines if line and not line.startswith(("#", "-r")))


@pytest.mark.parametrize(
    "nodes", ["bootstrap/preprocessing/emr/requirements.txt", "bootstrap/nodes/gpu/requirements.txt"]
)
def test_nodes_run_the_versions_that_are_tested_here(nodes: str) -> None:
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "locks" / "shoal.txt").read_text(), re.MULTILINE))
    ours = {**locked, **pins("requirements.txt")}
    assert {name: ours.get(name) for name in pins(nodes)} == pins(nodes)


@pytest.mark.parametrize(
    "name",
    [
        "requirements.txt",
        "requirements-dev.txt",
        "requirements-bench.txt",
        "requirements-checkov.txt",
        "bootstrap/preprocessing/emr/installer.txt",
    ],
)
def test_every_requirement_is_pinned(name: str) -> None:
    for line in (ROOT / name).read_text().splitlines():
        assert re.match(r"#|-r |$|[\w.-]+(\[[\w,-]+\])?==[\w.]+(; .*)?$", line), line


def test_help_lists_the_targets_of_make() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = "setup inputs demo test test-slow soak test-all lint format hooks lock bench gpu prices"
    assert [each for each in targets.split() if f"make {each} " not in listed] == []


def copy_what_setup_reads(to: Path) -> None:
    for name in ("Makefile", "package-lock.json", "pyproject.toml", "locks", *OF_NODES, *OF_BROWSER):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, to / name)
    for requirements in ROOT.glob("requirements*.txt"):
        shutil.copy(requirements, to)


def test_wheels_for_readers_are_fetched_on_request_and_then_updated(tmp_path: Path) -> None:
    copy_what_setup_reads(tmp_path)

    def fetched(goal: str) -> set[str]:
        command = ["make", "--dry-run", "--no-print-directory", goal]
        printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"^rm -rf (build/wheels/\S+\.zip)", printed, re.MULTILINE))

    always = {f"build/wheels/{name}.zip" for name in ("emr-x86_64", "emr-arm64", "gpu")}
    only_on_request = "build/wheels/gpu-inputs.zip"
    for goal in ("setup", "demo", "test", "lint"):
        assert fetched(goal) == always
    assert fetched("inputs") == {only_on_request}
    for goal in ("test-slow", "soak", "test-all"):
        assert fetched(goal) == {*always, only_on_request}
    (tmp_path / "build" / "wheels").mkdir(parents=True)
    (tmp_path / only_on_request).touch()
    os.utime(tmp_path / only_on_request, (0, 0))
    assert fetched("setup") == {*always, only_on_request}


def test_setup_prints_one_short_line_per_step(tmp_path: Path) -> None:
    copy_what_setup_reads(tmp_path)
    only_says = tmp_path / "sh"
    only_says.write_text('#!/bin/sh\ncase "$2" in echo*) exec /bin/sh -c "$2";; esac\n')
    only_says.chmod(0o755)
    goals = ("setup", "inputs", ".venv/.ready-dev", ".venv/.ready-bench", ".venv/checkov/.ready")
    typed = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    made = subprocess.run(
        ["make", f"SHELL={only_says}", *goals], cwd=tmp_path, capture_output=True, text=True, check=True, env=typed
    )
    lines = [line for line in made.stdout.splitlines() if not line.startswith("make: ")]
    assert len(lines) >= len(goals)
    assert [line for line in lines if not line.startswith("setup: ") or len(line) > 80] == []
    assert made.stderr == ""


def test_setup_and_cdk_never_execute_the_name_of_the_folder(tmp_path: Path) -> None:
    home = tmp_path / "a 'b' \"c\" $(touch canary)`touch canary`;touch canary"
    (home / ".venv" / "bin").mkdir(parents=True)
    copy_what_setup_reads(home)
    (home / ".venv" / "bin" / "python").symlink_to(sys.executable)
    printed = subprocess.run(
        ["make", "-n", "--no-print-directory", "setup"], cwd=home, capture_output=True, text=True, check=True
    ).stdout
    assert "canary" not in printed
    (writes,) = (line for line in printed.splitlines() if line.endswith("> .venv/bin/cdk"))
    subprocess.run(["sh", "-c", writes], cwd=home, check=True)
    node = home / ".venv" / "bin" / "node"
    node.write_text('#!/bin/sh\nprintf "%s\\n" "${PATH%:here}" "$@"\n')
    node.chmod(0o755)
    command = ["sh", home / ".venv" / "bin" / "cdk", "synth", "a b"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PATH": "here"}, executable="/bin/sh", capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        str(home / ".venv" / "bin"),
        str(home / "node_modules" / "aws-cdk" / "bin" / "cdk"),
        "synth",
        "a b",
    ]
    assert list(tmp_path.rglob("canary")) == []


@pytest.mark.parametrize("folder", [".", "tests/browser"])
def test_the_npm_lock_has_no_addresses_and_pins_all_requests(folder: str) -> None:
    assert "resolved" not in (ROOT / folder / "package-lock.json").read_text()
    asked = json.loads((ROOT / folder / "package.json").read_text())["dependencies"]
    assert [version for version in asked.values() if not re.fullmatch(r"[\d.]+", version)] == []


def test_links_in_the_documents_lead_somewhere() -> None:
    for document in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks" / "results").glob("*.md"),
    ]:
        for target, part in re.findall(r"\]\(([^)#:]*)#?([^)#:]*)\)", document.read_text()):
            there = document.parent / target if target else document
            if os.path.relpath(there, ROOT / "docs") in PAGES:
                continue
            assert there.exists(), f"{document.name}: {target}"
            assert not part or part in headings(there), f"{document.name}: {target}#{part}"


def headings(document: Path) -> set[str]:
    """Return the anchors of a document's headings."""
    found = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in found}


@pytest.mark.parametrize(
    ("archive", "machine"),
    [
        ("emr-x86_64", "x86_64"),
        ("emr-arm64", "aarch64"),
        ("gpu", "x86_64"),
        pytest.param("gpu-inputs", "x86_64", marks=pytest.mark.soak),
    ],
)
def test_deployed_archives_have_only_wheels_for_aws_machines(archive: str, machine: str) -> None:
    with zipfile.ZipFile(ROOT / "build" / "wheels" / f"{archive}.zip") as packed:
        wheels = [name.removesuffix(".whl") for name in packed.namelist() if name.endswith(".whl")]
    assert wheels
    assert not [name for name in wheels if not name.endswith(("-any", f"_{machine}"))]
    compiled = [name for name in wheels if not name.endswith("-any") and "-abi3-" not in name]
    pythons = {name.split("-")[2] for name in compiled}
    assert pythons == ({"cp311"} if archive.startswith("emr") else {"cp311", "cp312", "cp313", "cp314"})
