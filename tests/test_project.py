"""The project's files agree with each other, and the forge and the commit hooks run the tools of the project."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.messages import NAME
from tests.test_lock import PYTHONS
from tools.site import PAGES

ROOT = Path(__file__).parents[1]
OF_NODES = ("bootstrap/emr", "bootstrap/gpu")
"""Folders of the code that nodes run first."""
OF_BROWSER = ("tests/browser/package-lock.json", "tests/browser/unpack.mjs")


def test_the_forge_runs_the_checks_of_every_change() -> None:
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert tuple(job["strategy"]["matrix"]["python"]) == PYTHONS
    actions = [step["uses"] for step in job["steps"] if "uses" in step]
    assert [each for each in actions if not re.search(r"@[0-9a-f]{40}$", each)] == []  # a tag can be moved


def test_commit_hooks_run_the_tools_of_the_project() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert {each["repo"] for each in repositories} == {"local"}
    hooks = [hook for each in repositories for hook in each["hooks"]]
    assert [hook["id"] for hook in hooks if ".venv/bin/" not in hook["entry"] or hook["language"] != "system"] == []


def test_python_files_have_at_most_400_lines() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]
    assert paths
    assert [path for path in paths if len((ROOT / path).read_bytes().splitlines()) > 400] == []


def test_each_entry_of_a_golden_file_belongs_to_a_test() -> None:
    golden_files = [*ROOT.glob(f"tests/**/{NAME}"), *ROOT.glob(f"packages/*/tests/{NAME}")]
    assert golden_files
    for path in golden_files:
        for file, entries in json.loads(path.read_text("utf-8")).items():
            text = (path.parent / file).read_text("utf-8")
            gone = [test for test in entries if f"def {test.partition('[')[0]}(" not in text]
            assert gone == [], f"{path}: remove these entries with `make messages`"


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
