"""Runs the commands of the tables `printed/*.yaml` on prepared files and answers, and returns their output."""

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

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter
from shoal_guard.sweep.monthly_prices import MonthlyPrice
from shoal_guard.sweep.sweeping import FoundResource

from bootstrap.aws.account import Account
from bootstrap.cli.deployments import costs
from bootstrap.demo.life import DemoResult
from bootstrap.lifecycle.bill import Bill
from bootstrap.lifecycle.deploy import DeployResult
from bootstrap.lifecycle.destroy_preview import DestroyPreview
from bootstrap.lifecycle.fetch import FetchResult
from bootstrap.lifecycle.kept import KeptBucket
from bootstrap.lifecycle.logs import LogExcerpt
from bootstrap.lifecycle.status import Status
from bootstrap.removal.ownership import KINDS
from bootstrap.removal.teardown import DestroyResult
from bootstrap.training.places.bucket_place import RunOverview
from experiments.plans.parts import Experiment
from experiments.plans.stored import StoredExperiment, write_stored
from infra.rules import Finding
from tests.bootstrap.cli.command import ACCOUNT, content_of, shoal_here
from tests.bootstrap.cli.known_model import save
from tests.bootstrap.cli.made_datasets import make_dataset, make_texts
from tests.experiments import made_records
from tests.experiments.report import examples
from trainer.embeddings.vectors import WordVectors, write_binary

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
class Plan:
    """Plan of an experiment without unfinished runs."""

    output: Path

    def prices(self) -> list[object]:
        return []


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

    def stop(self, _: object) -> tuple[str, str]:
        return self.ends


ANSWERS: dict[str, Any] = {
    "bootstrap.aws.account.Account.number": str,
    "bootstrap.aws.deployment.find_deployment": MadeDeployment,
    "bootstrap.aws.stacks.describe": dict[str, Any] | None,
    "bootstrap.cli.learning.experiment._run": str | None,
    "bootstrap.experiments.running.plan_runs": Plan,
    "bootstrap.demo.life.run": DemoResult,
    "bootstrap.lifecycle.bill.fetch_bill": Bill,
    "bootstrap.lifecycle.deploy.deploy": DeployResult,
    "bootstrap.lifecycle.deploy.require_libraries": None,
    "bootstrap.lifecycle.destroy_preview.preview": DestroyPreview,
    "bootstrap.lifecycle.fetch.fetch_runs": FetchResult,
    "bootstrap.lifecycle.fetch.find_data_bucket": str,
    "bootstrap.lifecycle.guard.extend": datetime,
    "bootstrap.lifecycle.kept.find_kept": tuple[list[KeptBucket], list[str]],
    "bootstrap.lifecycle.logs.guard": LogExcerpt | None,
    "bootstrap.lifecycle.logs.nodes": list[LogExcerpt],
    "bootstrap.lifecycle.logs.steps": list[LogExcerpt],
    "bootstrap.lifecycle.preflight.online": tuple[str, list[Finding]],
    "bootstrap.lifecycle.runs.find_run": StartedRun,
    "bootstrap.lifecycle.status.read_status": Status,
    "bootstrap.preprocessing.preview.cores": int,
    "shoal_guard.sweep.monthly_prices.price_of": dict[str, MonthlyPrice],
    "shoal_guard.sweep.sweeping.delete_found": list[FoundResource],
    "shoal_guard.sweep.sweeping.find_owned": list[FoundResource],
    "bootstrap.removal.teardown.destroy": DestroyResult,
    "bootstrap.training.attaching.overview": list[RunOverview],
    "bootstrap.training.train.train": dict[str, Any],
}
"""Replaced functions with the types of their results."""


def model(path: Path, of: dict[str, Any]) -> None:
    path.mkdir()
    save(path, of["scale"], **of["about"])


def vectors(path: Path, words: dict[str, list[float]]) -> None:
    write_binary(str(path), WordVectors(list(words), np.array(list(words.values()), np.float32)))


def unfinished(path: Path, about: str) -> None:
    """Write the folder of an experiment without a finished run."""
    arms = [{"name": "one", "local": {"ranks": 1}}]
    experiment = Experiment.model_validate({"about": about, "kind": "words", "repeats": 1, "arms": arms})
    write_stored(path, StoredExperiment(name="words", experiment=experiment, cores=2))


MADE: dict[str, Callable[..., object]] = {
    "dataset": make_dataset,
    "experiment": lambda path, more: examples.experiment(path, more=more),
    "model": model,
    "preprocessings": lambda path, _: examples.preprocessings(path),
    "run": lambda path, changes: made_records.whole(path, **changes),
    "texts": make_texts,
    "training": lambda path, changes: examples.training(path, **changes),
    "unfinished": unfinished,
    "vectors": vectors,
    "words": lambda path, _: examples.words(path),
}
"""Functions that generate files, from a path and the table's value."""


def answering(name: str, answer: Any) -> Any:
    """Return the replacement of a function or property."""
    value = TypeAdapter(ANSWERS[name]).validate_python(answer)
    if name.endswith(".living"):
        return value
    return (lambda _, thing: value[thing.identifier]) if name.endswith(".price_of") else Mock(return_value=value)


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
    patch.setattr("bootstrap.progress._LINE_SECONDS", 3600.0)  # a slow command prints no more lines than a fast one
    for name, content in row["files"].items():
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content_of(content))
    for path, (kind, about) in ((path, *each.items()) for path, each in row["made"].items()):
        MADE[kind](here / path, about)
    for name, answer in row["answers"].items():
        where, _, attribute = name.rpartition(".")
        owner: Any = {"Account": Account}.get(where.rpartition(".")[2]) or import_module(where)
        patch.setattr(owner, attribute, answering(name, answer))
    before, words = files_below(here), shlex.split(row["command"].format(**places))
    done = shoal_here(
        *words[1:],
        given=row.get("typed", row.get("stdin", "")).encode(),
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
