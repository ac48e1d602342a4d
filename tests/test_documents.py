"""Paths, modules and attributes in the documents exist."""

import re
import subprocess
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATH = re.compile(r"\.?[\w-][\w./-]*(?:/|\.(?:py|sh|md|ya?ml|toml|txt|json|h5))")
PACKAGES = (
    *("common", "corpus", "jobs", "trainer", "bootstrap", "infra", "experiments", "shoal"),
    *("shoal_balance", "shoal_guard", "shoal_local_aws"),
    *("benchmarks", "tools"),
)
DOTTED = re.compile(rf"(?<![\w./-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+")
MADE = {"dataset.h5", "counts.json", "package-lock.json"}
"""Files that Shoal writes."""


@cache
def tracked() -> frozenset[str]:
    """Return the files that git tracks and their folders, each folder with a slash at its end."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]
    return frozenset(files) | {
        f"{folder}/" for path in files for folder in map(str, Path(path).parents) if folder != "."
    }


def paths(document: str) -> set[str]:
    quoted = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", (ROOT / document).read_text())
    return {each for each in quoted if PATH.fullmatch(each)} - MADE


@pytest.mark.parametrize(("document", "least"), [("CONTRIBUTING.md", 40), ("docs/architecture.md", 20)])
def test_paths_in_documents_exist(document: str, least: int) -> None:
    # In the architecture a path may be relative to the folder of its sentence.
    named, known = paths(document), set(tracked())
    if document == "docs/architecture.md":
        known = {path.split("/", part)[-1] for path in known for part in range(path.rstrip("/").count("/") + 1)}
    assert len(named) > least
    assert sorted(named - known) == []


def is_there(name: str) -> bool:
    """Return whether a dotted name is a module, or an attribute of one."""
    module, _, attribute = name.rpartition(".")
    try:
        if find_spec(name):
            return True
    except ModuleNotFoundError:
        return bool(module) and is_there(module) and hasattr(import_module(module), attribute)
    return hasattr(import_module(module), attribute)


@pytest.mark.parametrize("document", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda path: path.name)
def test_modules_and_attributes_in_documents_exist(document: Path) -> None:
    text = document.read_text()
    named = {each for each in DOTTED.findall(text) if not PATH.fullmatch(each)}
    assert sorted(each for each in named if not is_there(each)) == []
