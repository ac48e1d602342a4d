"""`shoal experiment`: runs plain commands in child processes, keeps finished runs, and passes signals on."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from common.errors import ExperimentError, UsageError
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from experiments.matrix import Experiment, PlannedRun, plan_runs, read_experiment
from infra import catalog, topology
from shoal.cli.verbs import experiment
from shoal.config_file import write_config
from shoal.interrupt import Interrupt
from shoal.runs.train import repeating_options
from tests.shoal.cli.command import shoal_here
from tests.waiting import until

SHIPPED = sorted(path.stem for path in (Path(__file__).parents[4] / "experiments").glob("*.yaml"))
TOPOLOGIES = Path(__file__).parents[4] / "topologies"
TWO_ARMS = """\
about: Two against one.
verb: train
repeats: 1
settings: {model: lstm, hidden: 8, epochs: 2, global_batch: 64, threads: 1, checkpoint_minutes: 0.004}
baseline: one
arms:
  - {name: one, slow: [10]}
  - {name: two, slow: [10, 10]}
"""


@pytest.fixture
def data(tmp_path) -> Path:
    from tests.trainer.conftest import VOCABULARY, make_rows

    path = tmp_path / "dataset.h5"
    settings = Settings(row_length=20, vocabulary_size=60)
    write_dataset(
        path, train=make_rows(600, seed=1), test=make_rows(60, seed=2), vocabulary=VOCABULARY, settings=settings
    )
    return path


def planned(output: Path, **fields: Any) -> PlannedRun:
    arms = [{"name": "a", "ranks": 1}]
    made = Experiment.model_validate({"about": "x", "verb": "train", "data": "d.h5", "arms": arms, **fields})
    return plan_runs(made, output)[0]


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_experiment_has_valid_commands_and_topologies_that_aws_starts(name: str, tmp_path) -> None:
    found = read_experiment(name)
    for each in plan_runs(found, tmp_path, given=["--input", "a.csv"]):
        experiment._check(each, {**found.settings, **each.arm.settings}, name)
        if each.arm.deployment:
            types = topology.instance_types(topology.load(each.arm.deployment, TOPOLOGIES))
            assert not any(catalog.find(kind).retired for kind in types) or each.arm.deployment == "fasttext-v100"


def test_a_word_that_yaml_reads_as_false_is_refused(tmp_path, messages) -> None:
    with messages.raises(UsageError):
        experiment._check(planned(tmp_path), {"balance": False}, "mine.yaml")


@pytest.mark.parametrize(
    "changed", [{"settings": {"epochs": 3}}, {"settings": {"epochs": 2, "hidden": 8}}, {"data": "e.h5"}], ids=str
)
def test_a_run_with_other_options_is_not_mixed_with_those_of_the_file(changed, tmp_path, monkeypatch, messages) -> None:
    monkeypatch.chdir(tmp_path)
    shared = {"model": "lstm", "epochs": 2}
    before = planned(Path("out"), settings=shared)
    options = [option.split() for option in " ".join(before.words).split("--")[1:]]
    given = {name: tuple(words) for name, *words in options}
    config = experiment._check(before, {}, "mine.yaml")
    before.folder.mkdir(parents=True)
    write_config(before.folder / "config.yaml", "train", repeating_options(config, given))
    assert experiment._check(before, {}, "mine.yaml") == config
    now = planned(Path("out"), **{**changed, "settings": {**shared, **changed.get("settings", {})}})
    with messages.raises(ExperimentError):
        experiment._check(now, {}, "mine.yaml")


def test_each_signal_is_passed_to_the_child_and_its_end_is_awaited(monkeypatch) -> None:
    child = Mock()
    child.wait.side_effect = [Interrupt(signal.SIGTERM), KeyboardInterrupt, 143]
    started = Mock(return_value=Mock(__enter__=Mock(return_value=child), __exit__=Mock(return_value=None)))
    monkeypatch.setattr(subprocess, "Popen", started)
    assert experiment._finish(["train"]) == 143
    assert [call.args[0] for call in child.send_signal.call_args_list] == [signal.SIGTERM, signal.SIGINT]
    assert started.call_args.kwargs["start_new_session"]


@pytest.mark.slow
def test_an_experiment_is_stopped_and_continued(tmp_path, data) -> None:
    (tmp_path / "mine.yaml").write_text(TWO_ARMS)
    output = tmp_path / "out"
    words = ("experiment", tmp_path / "mine.yaml", "--data", data, "--output", output)
    line = [sys.executable, "-m", "shoal.cli.main", *map(str, words)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        record = output / "one/1/record.jsonl"
        until(lambda: record.exists() and '"checkpoint"' in record.read_text())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "run the same command again" in errors
    continued = shoal_here(*words, "--json")
    assert continued.returncode == 0, continued.stderr
    starts = [line for line in map(json.loads, record.read_text().splitlines()) if line["kind"] == "start"]
    assert [start["from_step"] > 0 for start in starts] == [False, True]
    rows = json.loads(continued.stdout)["runs"]
    assert [(row["name"], row["runs"], row["ranks"]) for row in rows] == [("one", 1, 1), ("two", 1, 2)]
    assert rows[0]["speed_up"] == 1.0
    before = record.read_bytes()
    again = shoal_here(*words)
    assert (again.returncode, "2 of 2 runs already finished" in again.stderr) == (0, True)
    assert record.read_bytes() == before
