"""Runs of classifiers that go on learning: alike on any number of ranks, resumable, and known by their lineage."""

import json
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import Launch
from tests.trainer.pretraining import made_language
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model
from trainer.classification.model_folder import write_model

BASE = ("--model", "both", "--embedding", "8", "--hidden", "6", "--buckets", "500", "--epochs", "6", "--threads", "1")
GOING_ON = ("--epochs", "4", "--threads", "1", "--record-every", "1", "--global-batch", "32")
TEXTS = [" ".join(f"w{number}" for number in text) for text in made_language.texts(40, seed=5)]


@pytest.fixture(scope="module")
def base(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    run(launch, 0, made_language.dataset(folder / "dataset.h5"), folder / "run", *BASE)
    return folder / "run"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fewer such texts, with two words that the classifier does not know."""
    vocabulary = [*made_language.WORDS[:20], "w1-w2", "new", *made_language.WORDS[22:]]
    path = tmp_path_factory.mktemp("data") / "dataset.h5"
    return made_language.dataset(path, training=300, vocabulary=vocabulary)


def run(launch: Launch, ranks: int, data: Path, output: Path, *options: Any) -> str:
    process = launch(ranks, "-m", "trainer", "--data", data, "--output", output, *options)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return errors


def losses(output: Path) -> dict[int, float]:
    found = [json.loads(line) for line in (output / "record.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in found if line["kind"] == "step"}


def test_a_rate_of_nearly_nothing_leaves_its_answers(launch: Launch, base: Path, tmp_path: Path) -> None:
    own = base.parent / "dataset.h5"
    said = run(launch, 0, own, tmp_path, "--from", base, *GOING_ON, "--epochs", "1", "--learning-rate", "1e-12")
    assert "It has not learnt from the test rows" in said
    before, after = load_model(base), load_model(tmp_path)
    assert list(after.ids) == list(before.ids)
    for one, other in zip(Labeller(before)(TEXTS), Labeller(after)(TEXTS), strict=True):
        assert other.label == one.label
        assert other.probabilities == pytest.approx(one.probabilities, abs=1e-3)


@pytest.mark.soak
def test_it_is_the_same_on_two_ranks_and_when_it_was_stopped(
    launch: Launch, base: Path, data: Path, tmp_path: Path
) -> None:
    given = ("--from", base, "--old-data", base.parent / "dataset.h5", *GOING_ON)
    outputs = [tmp_path / name for name in ("one", "two", "stopped")]
    said = run(launch, 0, data, outputs[0], *given)
    assert "training rows of" in said
    assert "are learnt again beside 285 new ones" in said
    run(launch, 2, data, outputs[1], *given, "--balance", "3,1")
    copied = tmp_path / "copied"
    shutil.copytree(base, copied)
    of_copy = ("--from", copied, *given[2:])
    first = launch(0, "-m", "trainer", "--data", data, "--output", outputs[2], *of_copy, "--slow", "0:8")
    record = outputs[2] / "record.jsonl"
    while first.poll() is None and not (record.exists() and record.read_text().count('"kind": "step"') >= 5):
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=60)
    assert json.loads((outputs[2] / "summary.json").read_text())["stopped"], errors
    same = load_model(copied)
    write_model(copied / "model", replace(same, about={**same.about, "epoch": 7}))
    changed = launch(0, "-m", "trainer", "--data", data, "--output", outputs[2], *of_copy, "--resume")
    _, errors = changed.communicate(timeout=60)
    assert "it began with another model at --from, or other --old-data" in errors
    write_model(copied / "model", same)
    run(launch, 0, data, outputs[2], *of_copy, "--resume")
    assert losses(outputs[1]) == pytest.approx(losses(outputs[0]), rel=5e-3)
    assert losses(outputs[2]) == pytest.approx(losses(outputs[0]), rel=1e-4)
    model = load_model(outputs[0])
    assert list(model.ids) == [*made_language.WORDS, "w1-w2", "new"]
    (step,) = model.about["continued"]
    assert step["address"] == str(base)
    assert step["old_rows"] > 0
    card = (outputs[0] / "model" / "README.md").read_text()
    assert f"from the classifier {base}, after 6 epochs on dataset" in card
    assert "were learnt again" in card
