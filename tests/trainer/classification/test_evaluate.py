"""Evaluation: every row is evaluated once, in batches that fit into memory."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from common.errors import TrainingError
from trainer.classification.evaluate import evaluate
from trainer.classification.losses import Loss, Scale
from trainer.classification.models.classifier import Classifier
from trainer.classification.rows import TextRows
from trainer.computing.threads import Threads
from trainer.distributed.ranks import join_process_group
from trainer.rank_errors import RankError

LOSS = Loss(kind="bce", scale=Scale(0, 1, 1), positive_weight=1.0)


def of_words(words: np.ndarray, labels: np.ndarray | None = None) -> TextRows:
    """Rows of these words (rows, width), all of class 0 without labels."""
    labels = np.zeros(len(words), np.uint8) if labels is None else labels
    lengths = np.full(len(words), words.shape[1], np.uint16)
    return TextRows(tokens=words.astype(np.uint16), lengths=lengths, labels=labels, ratings=labels)


def evaluated(model: Classifier, rows: TextRows, *, loss=LOSS, threads=1, share=0, stop=lambda: False, **more):
    with join_process_group(1):
        split = np.array([share or len(rows)])
        return evaluate(model, rows, split=split, loss=loss, threads=Threads(threads), stop=stop, **more)


class FirstWord(Classifier):
    """Predicts positive if the first word of a text is 3. Records the sizes of the batches that fit into its memory."""

    def __init__(self, holds: int = 10_000) -> None:
        super().__init__()
        self.holds = holds
        self.embedding = nn.Embedding(5, 1)
        self.sizes: list[int] = []

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        assert keys is None
        assert not self.training
        if len(lengths) > self.holds:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.sizes.append(len(lengths))
        return torch.where(tokens[:, :1] == 3, 1.0, -1.0)


@pytest.mark.parametrize(
    ("holds", "largest", "threads"),
    [(10_000, 512, 1), (10_000, 512, 3), (512, 512, 1), (511, 256, 1), (7, 4, 1), (1, 1, 1)],
)
def test_every_row_is_evaluated_once_in_batches_that_fit_into_memory(holds, largest, threads):
    generator = np.random.default_rng(0)
    count = 9000 if holds > 1 else 30  # more than a round
    tokens = generator.integers(2, 4, (count, 3)).astype(np.uint16)
    labels = generator.integers(0, 2, count).astype(np.uint8)
    rows = TextRows(
        tokens=tokens, lengths=generator.integers(1, 4, count).astype(np.uint16), labels=labels, ratings=labels
    )
    model = FirstWord(holds)
    loss, confusion, *_ = evaluated(model, rows, threads=threads)
    called = tokens[:, 0] == 3
    assert confusion.counts == tuple(
        tuple(int(((labels == label) & (called == prediction)).sum()) for prediction in (0, 1)) for label in (0, 1)
    )
    assert confusion.rows == count
    right = (called == (labels == 1)).mean()
    assert loss == pytest.approx(right * np.log1p(np.exp(-1)) + (1 - right) * np.log1p(np.exp(1)), rel=1e-5)
    assert max(model.sizes) == largest
    assert sum(model.sizes) == count


class ByFirstWord(FirstWord):
    """Has one output for each of three classes, by the first word; 3 makes the last two equally probable."""

    OUTPUTS = torch.tensor([[0, 0, 0], [0, 0, 0], [9, 0, 0], [0, 9, 9], [0, 0, 9]], dtype=torch.float32)

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        assert keys is None
        self.sizes.append(len(lengths))
        return self.OUTPUTS[tokens[:, 0]]


def test_rows_are_counted_by_label_and_prediction_even_for_an_empty_class():
    rows = of_words(np.array([[2], [3], [4], [4]]), np.array([0, 0, 0, 1], np.uint8))
    three = Loss(kind="softmax", scale=Scale(0, 1, 1), positive_weight=1.0, classes=3)
    assert evaluated(ByFirstWord(), rows, loss=three)[1].counts == ((1, 1, 1), (0, 0, 1), (0, 0, 0))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_surest_mistakes_of_each_label_are_returned_the_surest_first(threads):
    odds = np.array([4, 2, 3, 4, -1, -2])  # outputs by first word, from 2

    class ByOdds(FirstWord):
        def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
            return torch.from_numpy(odds)[tokens[:, :1].long() - 2].float()

    rows = of_words(np.arange(2, 8)[:, None], np.array([0, 0, 0, 1, 1, 1], np.uint8))
    found = evaluated(ByOdds(), rows, threads=threads, mistakes=2)
    assert [(each.row, each.label) for each in found.mistakes] == [(0, 0), (2, 0), (5, 1), (4, 1)]
    assert all(each.prediction == 1 - each.label for each in found.mistakes)
    assert found.mistakes[0].probability == pytest.approx(1 / (1 + np.exp(-4)))
    assert evaluated(ByOdds(), rows).mistakes == []


def test_rows_that_no_rank_evaluates_and_memory_for_less_than_one_row_are_errors(messages):
    rows = of_words(np.full((9, 3), 2))
    with messages.raises(TrainingError):
        evaluated(FirstWord(), rows, share=8)
    with messages.raises(RankError):
        evaluated(FirstWord(0), rows)


def test_a_stopped_evaluation_returns_nothing():
    rows = of_words(np.full((9000, 3), 2))
    model, asked = FirstWord(), iter((False, True))
    assert evaluated(model, rows, stop=lambda: next(asked)) is None
    assert sum(model.sizes) == 8192
