"""Complete output of commands, and the files that they leave. `printed/*.yaml` has command lines with their output.

A group lists files that exist before its commands (`files`), generated files (`made`, by the function `make`), and
results of replaced functions (`answers`). A row may add to each. `{here}` is the folder of a command, `{shoal}` this
checkout; `{known}` and `{topics}` are models of known_model.py. Numbers in JSON have nine digits.
"""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from pydantic import TypeAdapter

from shoal.aws.account import Account
from shoal.aws.cdk import ROOT
from shoal.cli.verbs import costs
from shoal.deployments.removal.kinds import KINDS
from tests.shoal.cli.command import ACCOUNT, content_of, shoal_here

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def together(one: Any, other: Any, levels: int) -> Any:
    """Merge `other` into `one`, `levels` dictionaries deep."""
    if levels and isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{key: together(one.get(key), other[key], levels - 1) for key in other}}
    return other


GROUPS: list[tuple[str, dict[str, Any]]] = [
    (f"{path.stem}: {group['about']}", group)
    for path in sorted(Path(__file__).with_name("printed").glob("*.yaml"))
    for group in yaml.safe_load(path.read_text())
]
EMPTY: dict[str, Any] = {"files": {}, "made": {}, "answers": {}}


@dataclass(frozen=True)
class MadeDeployment:
    """The attributes of a deployment that commands read directly."""

    topology: str


@dataclass(frozen=True)
class StartedRun:
    """Run with a given outcome."""

    name: str
    results: str
    continued: str
    ends: tuple[str, str]

    def stop(self) -> tuple[str, str]:
        return self.ends


ANSWERS: dict[str, Any] = {
    "shoal.aws.deployment.find_deployment": MadeDeployment,
    "shoal.aws.stacks.describe": dict[str, Any] | None,
    "shoal.deployments.runs.find_run": StartedRun,
    "shoal.runs.train.train": dict[str, Any],
}
"""Simpler types of results than the annotations of some replaced functions."""


def model(path: Path, value: dict[str, Any]) -> None:
    from tests.shoal.cli.known_model import save

    path.mkdir()
    save(path, value["scale"], **value["about"])


def vectors(path: Path, words: dict[str, list[float]]) -> None:
    import numpy as np

    from trainer.embeddings.vectors import WordVectors, write_binary

    write_binary(str(path), WordVectors(list(words), np.array(list(words.values()), np.float32)))


def make(kind: str, path: Path, value: Any) -> None:
    """Generate a file or folder of a kind that the tables name."""
    from tests.experiments import made_records
    from tests.experiments.report import examples
    from tests.shoal.cli.made_datasets import make_dataset, make_texts

    makers: dict[str, Callable[[], object]] = {
        "dataset": lambda: make_dataset(path, value),
        "experiment": lambda: examples.experiment(path),
        "model": lambda: model(path, value),
        "run": lambda: made_records.whole(path, **value),
        "texts": lambda: make_texts(path, value),
        "training": lambda: examples.training(path, **value),
        "vectors": lambda: vectors(path, value),
    }
    makers[kind]()


def replace(name: str, answer: Any, patch: pytest.MonkeyPatch) -> None:
    """Replace a function or method by one that returns an answer of the table."""
    where, _, attribute = name.rpartition(".")
    owner: Any = Account if where.endswith(".Account") else import_module(where)
    returned = ANSWERS.get(name) or getattr(owner, attribute).__annotations__["return"]
    if attribute == "price_of":  # one answer for each resource
        prices = TypeAdapter(dict[str, returned]).validate_python(answer)
        patch.setattr(owner, attribute, lambda _, thing: prices[thing.identifier])
    else:
        patch.setattr(owner, attribute, Mock(return_value=TypeAdapter(returned).validate_python(answer)))


def rounded(value: Any) -> Any:
    """Round floats in JSON to nine digits, because further digits differ between machines."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def files_below(folder: Path) -> set[str]:
    """Return the files below a folder, except the work files with which the same command would continue."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in files if ".shoal-work-" not in str(path)}


def printed(row: dict[str, Any], places: dict[str, Path], patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a row's command; return its status, output and new files in the form of the table."""
    here = places["here"]
    patch.chdir(here)
    patch.setattr(costs, "datetime", Mock(now=lambda _: NOW))
    for name, content in row["files"].items():
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content_of(content))
    for path, (kind, value) in ((path, *each.items()) for path, each in row["made"].items()):
        make(kind, here / path, value)
    for name, answer in row["answers"].items():
        replace(name, answer, patch)
    before, words = files_below(here), shlex.split(row["command"].format(**places))
    done = shoal_here(
        *words[1:],
        stdin=row.get("typed", row.get("stdin", "")).encode(),
        terminal="typed" in row,
        **ACCOUNT,
        AWS_REGION="us-east-1",
    )

    def plain(text: str) -> str:
        if str(here) in text:  # the folder's name changes the width of columns
            text = re.sub(r"(?<=\S) {2,}", "  ", text)
        for name, path in places.items():
            text = text.replace(str(path), f"{{{name}}}")
        return re.sub(r"\.shoal-work-\w+", ".shoal-work", text.replace(f" {len(KINDS)} kinds ", " {kinds} kinds "))

    try:
        out = rounded(json.loads(plain(done.stdout))) if "--json" in words else plain(done.stdout)
    except ValueError:
        out = plain(done.stdout)
    left = sorted(files_below(here) - before)
    return {"status": done.returncode, "out": out, "err": plain(done.stderr), "left": left}


ROWS = [
    pytest.param(together(EMPTY | group, row, 3), id=f"{about}: {row['command']}")
    for about, group in GROUPS
    for row in group["rows"]
]


@pytest.mark.parametrize("row", ROWS)
def test_a_command_prints_exactly_this(row, models, tmp_path, monkeypatch) -> None:
    assert printed(row, {**models, "here": tmp_path, "shoal": ROOT}, monkeypatch) == {
        "status": row.get("status", 0),
        "out": row.get("json", row.get("out", "")),
        "err": row.get("err", ""),
        "left": row.get("left", []),
    }
