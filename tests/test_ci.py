"""The forge runs .ci/run, on the Python versions of the locks."""

import re
from pathlib import Path

import yaml

from tests.test_lock import PYTHONS

ROOT = Path(__file__).parents[1]


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
