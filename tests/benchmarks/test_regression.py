"""Preprocessing against the last release: which commit that is, and which ratios count as slower."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.regression import preprocess_by, release, slower, unpack
from common.errors import ShoalError


def test_the_release_is_the_first_commit_with_its_version_also_after_that_has_moved(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        command = ["git", "-C", str(tmp_path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | who).stdout.strip()

    def commit(files: dict[str, str]) -> str:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        git("add", "--all")
        git("commit", "--no-verify", "--message", "a change")
        return git("rev-parse", "HEAD")

    git("init", "--quiet")
    (tmp_path / "corpus").mkdir()
    (tmp_path / "common").mkdir()
    before = commit({"pyproject.toml": 'version = "0.1.0"\n'})
    released = commit({"pyproject.toml": 'version = "0.2.0"\n'})
    commit({"pyproject.toml": 'dynamic = ["version"]\n', "corpus/version.py": 'VERSION = "0.2.0"\n'})
    commit({"corpus/version.py": "", "common/version.py": 'VERSION = "0.2.0"\n'})
    assert release(tmp_path, "0.2.0") == released
    assert release(tmp_path, "0.1.0") == before
    with pytest.raises(ShoalError, match=r"no commit of .* has set the version 0\.3\.0; name one by --against"):
        release(tmp_path, "0.3.0")
    unpack(tmp_path, before, tmp_path / "old")
    assert (tmp_path / "old" / "pyproject.toml").read_text() == 'version = "0.1.0"\n'
    with pytest.raises(ShoalError, match=r"git archive none: .*none"):
        unpack(tmp_path, "none", tmp_path / "other")


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ([1.15, 1.2, 1.1, 1.17], True),
        ([1.0, 1.01, 0.99, 1.0], False),
        ([1.04, 1.05, 1.04, 1.05], False),
        ([0.8, 1.5, 1.0, 1.2], False),
    ],
)
def test_slower_is_what_the_spread_of_the_pairs_cannot_explain(ratios: list[float], said: bool) -> None:
    assert slower(ratios) is said


def test_what_runs_is_the_code_of_the_given_tree_wherever_the_benchmark_is_started(tmp_path: Path) -> None:
    command = tmp_path / "bootstrap" / "cli" / "main.py"
    command.parent.mkdir(parents=True)
    for folder in (command.parent, command.parent.parent):
        (folder / "__init__.py").touch()
    command.write_text("import sys\nsys.exit('this tree')\n")
    with pytest.raises(ShoalError, match=f"preprocessing failed in {tmp_path}: exit 1: this tree"):
        preprocess_by(tmp_path, tmp_path / "reviews.json", tmp_path)
