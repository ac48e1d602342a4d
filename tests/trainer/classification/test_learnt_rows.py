"""The rows that a model learnt from are found again among texts."""

import numpy as np
import pytest

from corpus.encoding import EncodedRows
from trainer.classification import learnt_rows
from trainer.classification.learnt_rows import learnt_share, sketch, text_hashes
from trainer.classification.rows import RaggedRows

WORDS = 50


def texts(count: int, seed: int) -> EncodedRows:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 12, count)
    ids = generator.integers(1, WORDS, lengths.sum()).astype(np.int32)
    return EncodedRows(ids, np.cumsum(lengths) - lengths, lengths)


def rows(of: EncodedRows) -> RaggedRows:
    none = np.zeros(len(of.lengths), np.uint8)
    tokens = np.where(of.ids == 1, WORDS + 7, of.ids).astype(np.uint16)  # the dataset knows more words
    return RaggedRows(
        tokens=tokens,
        lengths=of.lengths.astype(np.uint32),
        labels=none,
        ratings=none,
        ends=of.lengths.cumsum(),
        row_length=6,
    )


@pytest.mark.parametrize("kept", [100, 4096])
@pytest.mark.parametrize("hashed", [1_000, 1_000_000])
def test_the_share_of_texts_that_were_learnt_is_known(monkeypatch: pytest.MonkeyPatch, kept: int, hashed: int) -> None:
    monkeypatch.setattr(learnt_rows, "_KEPT", kept)
    monkeypatch.setattr(learnt_rows, "_MOST_ROWS", hashed)
    learnt, others = texts(2_000, 1), texts(2_000, 2)
    about = {"training_rows": sketch(rows(learnt), words=WORDS, row_length=None)}
    own, other = (text_hashes(*each, words=WORDS) for each in (learnt, others))
    found, half = learnt_share(about, own), learnt_share(about, np.concatenate([own, other]))
    assert found == pytest.approx(1.0, abs=0.4 if hashed == 1_000 else 0.0)
    assert half == pytest.approx(0.5, abs=0.3)
    by_chance = learnt_share(about, other[others.lengths > 4])
    assert by_chance == pytest.approx(0.0, abs=0.01)


def test_words_after_the_row_length_and_texts_without_words_do_not_count() -> None:
    learnt = texts(300, 3)
    about = {"training_rows": sketch(rows(learnt), words=WORDS, row_length=4)}
    cut = learnt._replace(lengths=np.minimum(learnt.lengths, 4))
    assert learnt_share(about, text_hashes(*cut, words=WORDS)) == 1.0
    assert len(text_hashes(*cut._replace(lengths=np.zeros_like(cut.lengths)), words=WORDS)) == 0
    assert learnt_share(about, np.zeros(0, np.uint32)) is None


@pytest.mark.parametrize(
    "kept",
    [
        None,
        5,
        {},
        {"smallest": 7},
        {"smallest": "***", "rows": 1, "hashed": 1},
        {"smallest": "", "rows": 1, "hashed": 0},
    ],
)
def test_a_sketch_that_is_none_says_nothing(kept: object) -> None:
    assert learnt_share({"training_rows": kept}, np.arange(5, dtype=np.uint32)) is None
    assert learnt_share({}, np.arange(5, dtype=np.uint32)) is None
