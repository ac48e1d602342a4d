"""An LSTM and fastText's model learn from rows in turn, and classify by their mean."""

import numpy as np
import pytest
import torch

from corpus.text import FIRST_WORD
from trainer.classification import models
from trainer.classification.losses import Loss, Scale
from trainer.classification.models.both import Both
from trainer.classification.rows import TextRows
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.computing import dropout

WORDS = [f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
SETTINGS = {
    "words": FIRST_WORD + len(WORDS),
    "embedding": 6,
    "hidden": 5,
    "layers": 1,
    "pooling": "mean+max+words",
    "dropout": 0.3,
    "embedding_dropout": 0.5,
    "ngrams": 2,
    "buckets": 40,
    "outputs": 2,
}
ROWS = 60


def made(**changes: float) -> Both:
    torch.manual_seed(0)
    model = models.build("both", {**SETTINGS, **changes})
    assert isinstance(model, Both)
    model.read_vocabulary(WORDS)
    torch.nn.init.normal_(model.fasttext.last.weight)
    return model.double()


def some_rows(width: int = 12) -> TextRows:
    generator = np.random.default_rng(0)
    lengths = np.sort(generator.integers(1, width + 1, ROWS))[::-1].astype(np.uint16)
    ids = generator.integers(1, FIRST_WORD + len(WORDS), (ROWS, width))
    tokens = np.where(np.arange(width) < lengths[:, None], ids, 0).astype(np.uint16)
    labels = generator.integers(0, 2, ROWS).astype(np.uint8)
    return TextRows(tokens=tokens, lengths=lengths, labels=labels, ratings=labels)


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    rows = some_rows()
    return torch.from_numpy(rows.tokens.astype(np.int32)), torch.from_numpy(rows.lengths.astype(np.int64))


def keys() -> torch.Tensor:
    return torch.from_numpy(dropout.keys(7, 3, np.arange(ROWS)))


def test_texts_are_classified_by_the_mean_of_both() -> None:
    model, (tokens, lengths) = made().eval(), texts()
    words = tokens[torch.arange(tokens.shape[1]) < lengths[:, None]]
    by_ngrams = 10 * model.fasttext(words, lengths)
    torch.testing.assert_close(model(tokens, lengths), (model.lstm(tokens, lengths) + by_ngrams) / 2)


def test_what_a_row_gives_depends_on_its_key_alone() -> None:
    model, (tokens, lengths), all_keys = made(), texts(), keys()
    together = model(tokens, lengths, all_keys)
    for some in (slice(0, 1), slice(1, 2), slice(20, 59), slice(7, 40)):
        torch.testing.assert_close(together[some], model(tokens[some], lengths[some], all_keys[some]))


@pytest.mark.parametrize(("rest", "learns"), [(0, "lstm"), (1, "fasttext")])
def test_a_row_teaches_the_model_that_its_key_names(rest: int, learns: str) -> None:
    model, (tokens, lengths) = made(), texts()
    model(tokens, lengths, keys() // 2 * 2 + rest).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        gradient = parameter.grad.to_dense()
        assert bool(gradient.any()) == name.startswith(learns), name


def test_they_learn_in_turn_where_nothing_is_dropped() -> None:
    learnt = set()
    for row in range(8):
        model = made(dropout=0.0, embedding_dropout=0.0)
        loss = Loss(kind="softmax", scale=Scale(0, 1, 1), positive_weight=1.0)
        compute = text_gradients(model, some_rows(), loss=loss, device=torch.device("cpu"), timer=StepTimer())
        compute(np.array([row]), 1, 0)
        compute.set_table_gradients()
        parts = [
            name.partition(".")[0]
            for name, parameter in model.named_parameters()
            if parameter.grad is not None and bool(parameter.grad.to_dense().any())
        ]
        assert len(set(parts)) == 1
        learnt.update(parts)
    assert learnt == {"lstm", "fasttext"}


def test_it_has_as_many_weights_as_are_told() -> None:
    assert models.weights("both", SETTINGS) == sum(each.numel() for each in made().parameters())
