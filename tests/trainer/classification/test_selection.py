"""Folds contain each row once, with equal texts together; block scores are those of their rows."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.trainer.classification.test_rows import both
from trainer.classification.data import TextData
from trainer.classification.losses import BCE, SOFTMAX, Loss, Scale
from trainer.classification.rows import Rows
from trainer.classification.selection import block_scores, folds
from trainer.task import BlockScore

CPU = torch.device("cpu")
SCALE = Scale(0, 1, 1)


def data_of(rows: Rows, classes: tuple[str, ...] = ("a", "b", "c")) -> TextData:
    parts = {"training": rows, "validation": rows[:1], "test": rows[:1]}
    kinds = {"scale": SCALE, "rating_steps": 1, "rating_fraction": False, "classes": classes}
    return TextData(**parts, **kinds, vocabulary=[], stopwords=frozenset(), row_length=6, digest="d")


def texts_of(rows: Rows) -> list[tuple[int, ...]]:
    batch = rows.whole_batch(np.arange(len(rows)), CPU)
    return [tuple(each.tolist()) for each in batch.tokens.split(batch.lengths.tolist())]


@pytest.mark.parametrize("kind", [0, 1])
def test_five_folds_of_few_rows_hold_out_each_distinct_text_once(kind):
    rows = both([1 + number % 3 for number in range(600)])[kind]
    found = folds(data_of(rows), CPU, rows_in="memory")
    assert len(found) == 5
    assert sum(len(fold.validation) for fold in found) == 600
    held_out = [set(texts_of(fold.validation)) for fold in found]
    for fold, texts in zip(found, held_out, strict=True):
        assert len(fold.training) + len(fold.validation) == 600
        assert texts.isdisjoint(texts_of(fold.training))
    assert len(set().union(*held_out)) == sum(map(len, held_out))


def test_many_rows_have_one_fold_of_limited_size_and_a_part_of_one_class_makes_none(monkeypatch):
    monkeypatch.setattr("trainer.classification.selection._MOST_ROWS", 500)
    monkeypatch.setattr("trainer.classification.selection._ENOUGH", 100)
    _, rows = both([1 + number % 7 for number in range(1000)])
    (fold,) = folds(data_of(rows), CPU, rows_in="memory")
    assert len(fold.training) + len(fold.validation) == 500
    rows, _ = both([3] * 40)
    labels = np.zeros(40, np.uint8)
    labels[7] = 1
    lonely = type(rows)(tokens=rows.tokens, lengths=rows.lengths, labels=labels, ratings=labels)
    assert folds(data_of(lonely, classes=()), CPU, rows_in="memory") == ()


@pytest.mark.parametrize(("metric", "expected"), [("accuracy", 0.75), ("balanced", 5 / 6), ("f1-macro", 11 / 15)])
def test_a_block_score_depends_only_on_its_rows(metric, expected):
    labels = torch.tensor([1, 1, 1, 0] * 5)
    log_odds = torch.tensor([-1.0, 1, 1, -1] * 5)
    loss = Loss(kind=BCE, scale=SCALE, positive_weight=1.0)
    found = block_scores(loss, F.pad(log_odds[:, None], (1, 0)), labels, metric)
    assert len(found) == 5
    assert np.mean([block.metric for block in found]) == pytest.approx(expected, abs=0.1)
    if metric == "accuracy":  # blocks of 3 and 1 rows of both classes, all but one correct
        assert {(block.metric, round(block.score, 4)) for block in found} == {(0.75, round((1.5 + 11 / 15) / 3, 4))}
    else:
        assert all(block.score == block.metric for block in found)


def test_with_three_classes_the_most_probable_one_is_predicted():
    logits = torch.eye(3).repeat(10, 1) * 9
    loss = Loss(kind=SOFTMAX, scale=SCALE, positive_weight=1.0, classes=3)
    found = block_scores(loss, logits, torch.arange(3).repeat(10), "f1-macro")
    assert [block[:2] for block in found] == [(1.0, 1.0)] * 5
    assert isinstance(found[0], BlockScore)


def test_all_blocks_share_the_temperature_of_all_rows():
    labels = torch.tensor([1, 1, 1, 0] * 50)
    log_odds = torch.tensor([1.0, 1, -1, -1] * 50) * 3 * math.log(3)  # one in four is wrong
    loss = Loss(kind=BCE, scale=SCALE, positive_weight=1.0)
    found = block_scores(loss, F.pad(log_odds[:, None], (1, 0)), labels, "accuracy")
    (temperature,) = {block.log_temperature for block in found}
    assert math.exp(temperature) == pytest.approx(3, rel=0.15)
