"""Three classes: training, measures, the saved model, and equal results on one rank and on two."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.errors import TrainingError
from tests.trainer.runs import lines, run_here, train_here
from trainer.classification import task
from trainer.classification.data import TextData
from trainer.classification.losses import Loss, Scale
from trainer.classification.model_folder import load_model
from trainer.classification.rows import TextRows
from trainer.classification.task import Classification
from trainer.config import TrainConfig, configured

CLASSES = ("books", "films", "songs")
LENGTH = 8
LEARNING = ("--data", "three.h5", "--epochs", "3", "--global-batch", "100")


def some_rows(count: int, *, seed: int) -> TextRows:
    """Return rows of 1 to 8 words. Half of the words determine the class; 1 row in 25 is mislabelled."""
    generator = np.random.default_rng(seed)
    labels = generator.choice(3, count, p=(0.5, 0.4, 0.1))
    lengths = generator.integers(1, LENGTH + 1, count)
    telling = generator.random((count, LENGTH)) < 0.5
    telling[:, 0] = True
    own = 2 + 5 * labels[:, None] + generator.integers(0, 5, (count, LENGTH))
    plain = generator.integers(17, 22, (count, LENGTH))
    tokens = np.where(np.arange(LENGTH) < lengths[:, None], np.where(telling, own, plain), 0)
    wrong = generator.random(count) < 0.04
    labels = np.where(wrong, (labels + 1) % 3, labels).astype(np.uint8)
    return TextRows(tokens=tokens.astype(np.uint16), lengths=lengths.astype(np.uint16), labels=labels, ratings=labels)


def load(config: TrainConfig, *_: object, **__: object) -> TextData:
    """Return the data of the run, whatever dataset it names."""
    parts = {"training": some_rows(2000, seed=0), "validation": some_rows(100, seed=1), "test": some_rows(400, seed=2)}
    kinds = {"scale": Scale(0, 1, 1), "rating_steps": 1, "rating_fraction": False, "classes": CLASSES}
    words = [f"word{letter}" for letter in "abcdefghijklmnopqrst"]
    return TextData(**parts, **kinds, vocabulary=words, stopwords=frozenset(), row_length=LENGTH, digest="0" * 32)


@pytest.fixture(autouse=True)
def three_classes(monkeypatch):
    """Train on data with three classes."""
    monkeypatch.setattr(Classification, "load", staticmethod(load))


def test_three_classes_are_learned_and_their_confusion_matrix_is_recorded(tmp_path):
    found = train_here(tmp_path, *LEARNING)
    assert found["accuracy"] > found["majority"] + 0.2
    assert min(found["macro_f1"], found["balanced_accuracy"]) > 0.7
    assert not {"f1_positive", "f1_negative"} & found.keys()
    assert found["positive_weight"] == 1
    assert found["confusion"]["classes"] == list(CLASSES)
    counts = np.array(found["confusion"]["counts"])
    assert counts.sum(1).tolist() == np.bincount(some_rows(400, seed=2).labels).tolist()
    assert found["accuracy"] == counts.trace() / 400
    (tested,) = lines(tmp_path, "test")
    assert tested["confusion"] == found["confusion"]
    assert tested["accuracy_interval"] == found["accuracy_interval"]
    assert found["accuracy_interval"][0] < found["accuracy"] < found["accuracy_interval"][1]
    mistakes = tested["mistakes"]
    assert "mistakes" not in found
    assert {each["class"] for each in mistakes} == {*CLASSES}
    assert all(each["class"] != each["prediction"] for each in mistakes)
    assert all(word.startswith("word") for each in mistakes for word in each["words"].split())
    assert set(found["validation"]) == {"loss", "accuracy", "balanced_accuracy", "macro_f1", "majority"}
    model = load_model(tmp_path)
    assert model.about["test"]["confusion"] == found["confusion"]
    assert "mistakes" not in model.about["test"]
    loss = Loss(kind="softmax", scale=Scale(0, 1, 1), positive_weight=1.0, classes=3)
    assert replace(model.loss, temperature=1.0) == loss
    assert found["temperature"] == model.loss.temperature != 1
    assert found["log_loss"] != found["uncalibrated_log_loss"]


def test_three_classes_ignore_the_loss_and_weight_of_a_preset(tmp_path):
    instead = ("--loss", "softmax", "--positive-weight", "1")
    train_here(tmp_path, *LEARNING, "--preset", "reference", *instead, "--epochs", "1")
    assert load_model(tmp_path).loss.kind == "softmax"


def test_too_many_classes_are_refused(tmp_path):
    config = configured({"data": Path("three.h5"), "output": tmp_path, "loss": "softmax"})
    many, more = (replace(load(config), classes=tuple(map(str, range(count)))) for count in (1_000, 1_001))
    assert task._loss(config.options, many, config.data).classes == 1_000
    with pytest.raises(TrainingError, match=r"three\.h5 has 1,001 classes"):
        task._loss(config.options, more, config.data)


@pytest.mark.parametrize(("option", "value"), [("--loss", "mse"), ("--positive-weight", "0.5")])
def test_options_of_two_classes_are_refused_in_one_sentence(tmp_path, option, value, messages):
    status, errors = run_here(*LEARNING, "--output", tmp_path, option, value)
    assert (status, errors.count("\n")) == (1, 1)
    assert option in errors
    messages.check(errors)
    assert list(tmp_path.iterdir()) == []
