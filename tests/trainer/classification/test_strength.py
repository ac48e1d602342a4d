"""Strength of the linear model on few rows: near 0 for labels by chance, near 1 for labels that the texts determine."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from trainer.classification.data import TextData
from trainer.classification.losses import Loss, Scale
from trainer.classification.rows import RaggedRows
from trainer.classification.strength import _held_out_outputs, base_outputs, fold_strength
from trainer.config import configured

WORDS = [f"word{number}" for number in range(150)]
SCALE, CPU = Scale(0, 1, 1), torch.device("cpu")
TWO = Loss(kind="bce", scale=SCALE, positive_weight=0.6)
THREE = Loss(kind="softmax", scale=SCALE, positive_weight=1.0, classes=3)
TESTED = 300


def texts_of(count: int, chance: np.random.Generator) -> np.ndarray:
    """Return the word ids (count, 12) of random texts."""
    return chance.integers(2, 2 + len(WORDS), (count, 12))


def rows_of(texts: np.ndarray, labels: np.ndarray) -> RaggedRows:
    ends, labels = np.cumsum(np.full(len(texts), texts.shape[1])), labels.astype(np.uint8)
    lengths = np.full(len(texts), texts.shape[1])
    return RaggedRows(
        tokens=texts.ravel().astype(np.uint16), lengths=lengths, labels=labels, ratings=labels, ends=ends, row_length=12
    )


def strength_and_log_losses(
    texts: np.ndarray, labels: np.ndarray, loss: Loss, **options: float
) -> tuple[float, float, float]:
    """Return the strength for all rows but the last TESTED, and the log losses of those rows with strength 0 and with
    the returned strength."""
    training, tested = (rows_of(texts[part], labels[part]) for part in (np.s_[:-TESTED], np.s_[-TESTED:]))
    shared = {"vocabulary": WORDS, "stopwords": frozenset(), "row_length": 12, "scale": SCALE, "digest": "d"}
    own = {"training": training, "validation": tested, "test": tested, "rating_steps": 1, "rating_fraction": False}
    config = configured({"data": Path("d"), "output": Path("o"), "model": "linear", "global_batch": 8, **options})
    data = TextData(**shared, **own)
    strength = fold_strength(config, data, loss, batch=8, device=CPU)
    assert strength == fold_strength(config, data, loss, batch=8, device=CPU)
    outputs = _held_out_outputs(config, data, loss, tested, batch=8, device=CPU)
    base = base_outputs(None, loss, training)
    losses = (
        float(F.cross_entropy(loss.logits(base + factor * (outputs - base)), torch.from_numpy(labels[-TESTED:])))
        for factor in (0.0, strength)
    )
    return strength, *losses


@pytest.mark.parametrize(("loss", "shares"), [(TWO, (0.5, 0.5)), (TWO, (0.1, 0.9)), (THREE, (0.5, 0.3, 0.2))])
def test_labels_by_chance_have_the_log_loss_of_a_constant(loss, shares):
    chance = np.random.default_rng(0)
    labels = chance.choice(len(shares), 200 + TESTED, p=shares)
    strength, constant, log_loss = strength_and_log_losses(texts_of(200 + TESTED, chance), labels, loss)
    assert strength < 0.1
    assert log_loss < constant + 0.005


@pytest.mark.parametrize("loss", [TWO, THREE])
def test_labels_that_the_texts_determine_have_a_high_strength(loss):
    chance = np.random.default_rng(1)
    texts = texts_of(200 + TESTED, chance)
    labels = chance.integers(loss.classes, size=len(texts))
    texts[:, 2:6] = 2 + 10 * labels[:, None] + chance.integers(10, size=(len(texts), 4))
    strength, constant, log_loss = strength_and_log_losses(texts, labels, loss)
    assert strength > 0.7
    assert log_loss < 0.7 * constant


def test_repeated_texts_do_not_count_as_evidence():
    chance = np.random.default_rng(2)
    texts, labels = texts_of(60, chance), chance.integers(2, size=60)
    rest = texts_of(TESTED, chance), chance.integers(2, size=TESTED)
    repeated = (np.concatenate([*3 * [first], second]) for first, second in zip((texts, labels), rest, strict=True))
    strength, *_ = strength_and_log_losses(*repeated, TWO)
    assert strength < 0.2


def test_a_weight_that_the_user_gives_moves_the_constant_model():
    labels = np.array([0, 1, 1, 1])
    rows = rows_of(np.full((4, 12), 2), labels)
    default, given = (base_outputs(weight, TWO, rows) for weight in (None, 5.0))
    assert default.exp().item() == pytest.approx(4 / 2)
    assert given.exp().item() == pytest.approx(16 / 2)


def test_equal_texts_give_the_constant_model():
    labels = np.arange(20 + TESTED) % 2
    strength, *_ = strength_and_log_losses(np.full((20 + TESTED, 12), 5), labels, TWO)
    assert strength == 0
