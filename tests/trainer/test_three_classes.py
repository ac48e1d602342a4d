"""More than two classes are learnt, measured, kept with the model, and judged alike by one rank and by two."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.conftest import Launch
from tests.trainer.three_classes import CLASSES, load, some_rows
from trainer.__main__ import main
from trainer.classification.evaluate import evaluate
from trainer.classification.loading import load_model
from trainer.classification.losses import Loss, Scale
from trainer.classification.task import Classification
from trainer.computing.threads import Threads
from trainer.distributed.ranks import join_process_group

LEARNING = ("--data", "three.h5", "--threads", "1", "--epochs", "3", "--global-batch", "100")

Trained = Callable[..., int]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """trained("--output", ...) trains in this process; the exit status."""
    monkeypatch.setattr(Classification, "load", staticmethod(load))

    def run(*arguments: str | Path) -> int:
        monkeypatch.setattr("sys.argv", ["trainer", *LEARNING, *map(str, arguments)])
        return main()

    return run


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def summary(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "summary.json").read_text(), parse_constant=no_constant)
    return found


def test_three_classes_are_learnt_and_their_confusion_is_kept(trained: Trained, tmp_path: Path) -> None:
    assert trained("--output", tmp_path) == 0
    found = summary(tmp_path)
    assert found["accuracy"] > found["majority"] + 0.2
    assert min(found["macro_f1"], found["balanced_accuracy"]) > 0.7
    assert not {"f1_positive", "f1_negative"} & found.keys()
    assert found["positive_weight"] == 1
    assert found["confusion"]["classes"] == list(CLASSES)
    counts = np.array(found["confusion"]["counts"])
    assert counts.sum(1).tolist() == np.bincount(some_rows(400, seed=2).labels).tolist()
    assert found["accuracy"] == counts.trace() / 400
    record = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    (tested,) = (line for line in record if line["kind"] == "test")
    assert tested["confusion"] == found["confusion"]
    assert set(found["validation"]) == {"loss", "accuracy", "balanced_accuracy", "macro_f1", "majority"}
    model = load_model(tmp_path)
    assert model.about["test"]["confusion"] == found["confusion"]
    assert replace(model.loss, temperature=1.0) == Loss(
        kind="softmax", scale=Scale(0, 1, 1), positive_weight=1.0, classes=3
    )
    assert found["temperature"] == model.loss.temperature != 1
    assert found["log_loss"] != found["uncalibrated_log_loss"]


@pytest.mark.soak
def test_two_ranks_find_the_confusion_that_one_rank_finds(launch: Launch, tmp_path: Path) -> None:
    program = Path(__file__).with_name("three_classes.py")
    process = launch(2, program, *LEARNING, "--output", tmp_path, "--balance", "3,1")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    model, rows = load_model(tmp_path), some_rows(400, seed=2)
    with join_process_group(1):
        alone = evaluate(
            model.classifier, rows, split=np.array([400]), loss=model.loss, threads=Threads(1), stop=lambda: False
        )
    assert alone is not None
    assert alone[1].plain(CLASSES) == summary(tmp_path)["confusion"]
    batch = rows.batch(np.arange(400), torch.device("cpu"))
    probabilities = model.loss.probabilities(model.classifier(batch.tokens, batch.lengths))
    assert probabilities.shape == (400, 3)
    assert torch.allclose(probabilities.sum(1), torch.ones(400))


def test_a_preset_of_two_classes_is_taken_without_its_loss_and_its_weight(trained: Trained, tmp_path: Path) -> None:
    instead = ("--loss", "softmax", "--positive-weight", "1")
    assert trained("--output", tmp_path, "--preset", "reference", *instead, "--epochs", "1") == 0
    assert load_model(tmp_path).loss.kind == "softmax"


def test_so_many_classes_that_their_confusion_would_fill_the_disk_are_refused_in_one_sentence(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tuple(f"class {number}" for number in range(1_001))
    monkeypatch.setattr(
        Classification, "load", staticmethod(lambda *given, **how: replace(load(*given, **how), classes=names))
    )
    assert trained("--output", tmp_path) == 1
    sentence = "trainer: three.h5 has 1,001 classes, but training takes at most 1,000; leave out the texts of rare ones"
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--loss", "bce"), "--loss is bce, a loss of two classes, but three.h5 has 3; take --loss cross-entropy"),
        (("--loss", "mse"), "--loss is mse, a loss of two classes, but three.h5 has 3; take --loss cross-entropy"),
        (
            ("--positive-weight", "0.5"),
            "--positive-weight is 0.5, a weight of one of two classes, but three.h5 has 3; leave it out, or take 1",
        ),
    ],
)
def test_what_only_two_classes_have_is_refused_in_one_sentence(
    trained: Trained,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, str],
    sentence: str,
) -> None:
    assert trained("--output", tmp_path, *options) == 1
    assert capsys.readouterr().err == f"trainer: {sentence}\n"
    assert list(tmp_path.iterdir()) == []
