"""The benchmark of fastText's model: equal rows for both programs, and generated texts."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fasttext import piles, program, quality, regression, yelp
from benchmarks.gpu.texts import WORDS, draw_texts, make_text_rows, spell
from common.errors import DataError, ShoalError
from corpus.dataset_settings import Settings
from corpus.reading.sources import ReadingOptions
from corpus.reading.tally import Tally
from corpus.text import FIRST_WORD
from corpus.tokens import tokens
from shoal.prediction.texts import find_text_files, read_text_files

_KINDS = ("bad", "good")


@pytest.fixture(scope="module")
def pile():
    examples = [piles.Example(f"word{number} , <br {_KINDS[number % 2]}", number % 2) for number in range(60)]
    return piles.Pile(examples, [], 0.1)


@pytest.fixture(scope="module")
def parts(pile, tmp_path_factory):
    return piles.make_parts(pile, tmp_path_factory.mktemp("pile") / "parts", seed=0)


def write_reviews(path: Path, *reviews: tuple[str, int]) -> Path:
    lines = [json.dumps({"reviewText": text, "overall": rating}) for text, rating in reviews]
    path.write_text("\n".join([*lines, ""]))
    return path


def test_pile_has_words_with_labels_without_duplicate_texts(tmp_path: Path) -> None:
    reviews = [("It's GOOD, yes", 4), ("it ' s good , yes", 1), ("bad; bad", 3), ("...", 5), ("", 5), ("\0 :", 2)]
    file = write_reviews(tmp_path / "reviews.json", *reviews)
    found = piles.read_pile(f"--input {file} --positive-from 4 --test-share 0.2")
    assert found.learned == [("it ' s good , yes", 1), ("bad bad", 0), (". . .", 1)]
    assert (found.test, found.test_share) == ([], 0.2)


def test_pile_with_test_files_keeps_all_texts(tmp_path: Path) -> None:
    learned = write_reviews(tmp_path / "learned.json", *[("good", 5), ("bad", 1)] * 3)
    test = write_reviews(tmp_path / "test.json", *[("good", 5), ("good", 5)])
    found = piles.read_pile(f"--input {learned} --test-input {test}")
    assert found.learned == [("good", 1), ("bad", 0)] * 3
    assert found.test == [("good", 1)] * 2


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (ShoalError, "--inptu file", "No such option '--inptu'"),
        (DataError, "--rating-field a --label-field b", "exclude each other"),
    ],
)
def test_invalid_options_end_with_a_sentence(kind: type[Exception], options: str, said: str) -> None:
    with pytest.raises(kind, match=said):
        piles.read_pile(options)


def test_both_programs_get_all_rows_once_with_the_same_words(parts, pile) -> None:
    assert len(parts.tested) == 6
    assert len(parts.held_out) == 2  # a twentieth
    assert Counter([*parts.learned, *parts.held_out, *parts.tested]) == Counter(pile.learned)
    lines = parts.train.read_text().splitlines()
    examples = [*parts.learned, *parts.held_out]
    assert Counter(lines) == Counter(f"__label__{label + 1} {text}" for text, label in examples)


def test_seed_chooses_the_test_rows_of_a_pile_without_test_files(tmp_path: Path, pile) -> None:
    tested = [piles.make_parts(pile, tmp_path / f"{seed}", seed=seed).tested for seed in range(2)]
    assert tested[0] != tested[1]
    whole = pile._replace(learned=pile.learned[:40], test=pile.learned[40:])
    parts = [piles.make_parts(whole, tmp_path / f"whole-{seed}", seed=seed) for seed in range(2)]
    assert parts[0].tested == parts[1].tested == whole.test
    assert parts[0].train.read_text() != parts[1].train.read_text()


@given(st.data())
def test_generated_words_are_distinct_single_words(data) -> None:
    one, other = (data.draw(st.integers(0, WORDS - 1)) for _ in range(2))
    assert (spell(one) == spell(other)) == (one == other)
    assert tokens(spell(one)) == [spell(one)]


def test_generated_texts_have_the_length_of_reviews_and_mostly_predict_their_label() -> None:
    rows = make_text_rows(3000)
    assert 125 < rows.lengths.mean() < 140
    assert (rows.tokens >= FIRST_WORD).all()
    assert (rows.tokens < WORDS + FIRST_WORD).all()
    odd = np.add.reduceat(rows.tokens % 2, rows.ends - rows.lengths) / rows.lengths
    assert ((odd > 0.5) == rows.labels).mean() > 0.9
    counts = np.bincount(rows.tokens)
    assert counts.max() < 0.1 * counts.sum()
    assert np.array_equal(make_text_rows(3000).tokens, rows.tokens)


def test_file_has_the_generated_texts_and_labels(tmp_path: Path) -> None:
    yelp.write_csv(tmp_path / "texts.csv", 300, seed=1)
    (block,) = draw_texts(300, seed=1)
    texts, start = [], 0
    for length in block.lengths.tolist():
        texts.append(" ".join(spell(word) for word in block.words[start : start + length].tolist()))
        start += length
    files = find_text_files([str(tmp_path / "texts.csv")], ReadingOptions(), Settings())
    (batch,) = read_text_files(files, Tally())
    assert batch.texts == texts
    assert [code - 1 for code in batch.codes] == block.labels.tolist()


def test_program_learns_and_its_epochs_cost_less_than_the_call(tmp_path: Path, pile) -> None:
    pytest.importorskip("fasttext", reason="requirements-bench.txt is not installed")
    trained = program.train(
        piles.write_examples(tmp_path / "train.txt", pile.learned), thread=1, bucket=1000, epoch=50, lr=1.0
    )
    assert trained.epochs.cpu < trained.call.cpu
    found = program.classify(trained.model, pile.learned)
    assert found["accuracy"] > 0.95
    assert found["predict_cpu"] > 0


def test_logistic_regression_classifies_the_same_rows(tmp_path: Path, parts) -> None:
    pytest.importorskip("sklearn", reason="requirements-bench.txt is not installed")
    found = quality._run(regression.tfidf, parts, tmp_path, seed=0, seconds=1)
    assert (found["accuracy"], found["log_loss"] < 0.5) == (1, True)


def test_probabilities_are_evaluated_by_log_loss_and_calibration() -> None:
    examples = [piles.Example(text, label) for text, label in (("a", 1), ("b", 0), ("c", 0), ("d", 0))]
    found = program.evaluate(lambda _: np.array([0.95, 0.92, 0.3, 1], np.float32), examples)
    assert found["accuracy"] == 1 / 2
    assert found["log_loss"] == pytest.approx(-np.log([0.95, 0.08, 0.7, 1e-6]).mean())
    assert found["calibration_error"] == pytest.approx((1.87 + 0.3) / 4)
