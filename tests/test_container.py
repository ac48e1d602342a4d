"""The Dockerfile finds the files that it copies, and has the base of AWS's image."""

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from infra.managed_spec import aws_image

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COPIED = re.findall(r"^COPY (\S+) ", DOCKERFILE, re.MULTILINE)


def is_ignored(path: str) -> bool:
    """Return whether .dockerignore excludes a path: its last line that matches the path or a parent decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        pattern, keeps = line.removeprefix("!"), line.startswith("!")
        above = [str(each) for each in (Path(path), *Path(path).parents)]
        if line and not line.startswith("#") and any(fnmatch(each, pattern.removeprefix("**/")) for each in above):
            ignored = not keeps
    return ignored


@pytest.mark.parametrize("path", COPIED)
def test_copied_files_exist_and_are_not_ignored(path: str) -> None:
    assert (ROOT / path).exists()
    assert not is_ignored(path)


def test_only_copied_files_are_sent_to_the_builder() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sent = [path for path in tracked.splitlines() if not is_ignored(path)]
    copied = {next((folder for folder in COPIED if path.startswith(f"{folder}/")), path) for path in sent}
    assert copied == {path for path in COPIED if not path.startswith("build/")}
    assert is_ignored("trainer/__pycache__/x.pyc")


def test_its_base_is_the_default_image_of_topologies() -> None:
    (base,) = re.findall(r"^FROM (\S+)$", DOCKERFILE, re.MULTILINE)
    assert base.replace("${REGION}", "eu-west-1") == aws_image("eu-west-1")
