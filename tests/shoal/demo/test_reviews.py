import json
from collections import Counter

import pytest

from corpus.text import load_stopwords, words
from shoal.demo.reviews import TURNS, write_reviews
from tests import oracle

TEXTS = 2_000


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> list[bytes]:
    path = tmp_path_factory.mktemp("generated") / "reviews.json"
    written = write_reviews(path, texts=TEXTS, seed=3)
    content = path.read_bytes()
    assert written.lines == content.count(b"\n")
    return content.splitlines()


def test_the_same_seed_writes_the_same_reviews(tmp_path) -> None:
    for name in ("a", "b"):
        write_reviews(tmp_path / name, texts=50, seed=1)
    write_reviews(tmp_path / "c", texts=50, seed=2)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


def test_the_generators_counts_match_the_dataset_contract(tmp_path) -> None:
    written = write_reviews(tmp_path / "reviews.json", texts=500)
    _, _, counts = oracle.dataset([(tmp_path / "reviews.json").read_bytes()], set())
    assert {name: counts[name] for name in vars(written)} == vars(written)


def test_every_reason_for_a_malformed_line_occurs(lines) -> None:
    reasons = {found for line in lines if isinstance(found := oracle.review(line), str)}
    assert reasons == {"not_json", "not_an_object", "no_text", "text_not_a_string", "no_rating", "bad_rating"}


def test_negating_words_are_not_stopwords() -> None:
    assert not load_stopwords() & set(TURNS)


def test_no_single_word_determines_the_sentiment(lines) -> None:
    labels: dict[str, bool] = {}
    for line in lines:
        if oracle.review(line) not in ("not_json", "not_an_object") and not isinstance(oracle.review(line), str):
            review = json.loads(line)
            labels[review["reviewText"]] = review["overall"] >= 4
    holding = {True: Counter(), False: Counter()}
    for text, label in labels.items():
        holding[label].update(set(words(text)))
    size = Counter(labels.values())
    accuracies = [
        max(right, len(labels) - right) / len(labels)
        for word in holding[True] | holding[False]
        for right in [holding[True][word] + size[False] - holding[False][word]]
    ]
    assert max(accuracies) < 0.68
