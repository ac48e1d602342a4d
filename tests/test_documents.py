"""The documents for those who change Shoal name no path that is not there."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATH = re.compile(r"\.?[\w-][\w./-]*(?:/|\.(?:py|sh|md|ya?ml|toml|txt|json|h5))")
MADE = {"dataset.h5", "counts.json", "package-lock.json"}
"""Files that Shoal writes, not its own."""


@cache
def tracked() -> frozenset[str]:
    """The files that git tracks, and their folders, each folder with a slash at its end."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]
    return frozenset(files) | {
        f"{folder}/" for path in files for folder in map(str, Path(path).parents) if folder != "."
    }


def paths(document: str) -> set[str]:
    quoted = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", (ROOT / document).read_text())
    return {each for each in quoted if PATH.fullmatch(each)} - MADE


def test_paths_of_contributing_are_there_from_the_projects_folder_on() -> None:
    named = paths("CONTRIBUTING.md")
    assert len(named) > 40
    assert sorted(named - tracked()) == []


@pytest.mark.parametrize("document", ["docs/architecture.md"])
def test_paths_of_the_architecture_are_there_in_some_folder(document: str) -> None:
    """There a path may begin at the folder that the sentence is about."""
    named = paths(document)
    assert len(named) > 20
    ends = {path.split("/", part)[-1] for path in tracked() for part in range(path.rstrip("/").count("/") + 1)}
    assert sorted(named - ends) == []
