"""Features of texts equal those of a plain implementation, and the output for a text depends on that text only."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpus.tokens import token_hash
from trainer.classification import models
from trainer.classification.models import ngrams as module
from trainer.classification.models import vocabulary_rows
from trainer.classification.models.ngrams import MOST_BUCKETS, default_buckets, features, plain_features
from trainer.classification.models.vocabulary_rows import WordRows, plain_word_rows, word_hashes, word_rows
from trainer.classification.rows import RaggedRows
from trainer.computing import row_gradients
from trainer.options.classifier_options import char_lengths

WORDS = ["good", "not", "é", "x" * 40, "日本", "!"]
HASHES = [token_hash(word.encode()) for word in ("", "", *WORDS)]
BUCKETS = st.sampled_from([1, 7, 1000, 2_000_000])
LENGTHS = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda ends: range(min(ends), max(ends) + 1))
TEXTS = st.lists(st.lists(st.integers(1, len(HASHES) - 1), min_size=1, max_size=8), min_size=1, max_size=5)


@pytest.fixture(params=["numba", "torch"])
def computed_by(request, monkeypatch):
    """Run the test with numba and with torch, as on a GPU."""
    for each in (module, row_gradients):
        monkeypatch.setattr(each, "computed_by_numba", lambda _tensor: request.param == "numba")


def joined(texts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = [word for text in texts for word in text]
    return torch.tensor(tokens, dtype=torch.int32), torch.tensor([len(text) for text in texts])


@given(words=st.lists(st.text(min_size=1, max_size=30), unique=True))
def test_word_hashes_equal_those_of_the_plain_implementation(words):
    signed = [token_hash(word.encode()) for word in ("", "", *words)]
    assert word_hashes(words).tolist() == [each - 2**32 if each >= 2**31 else each for each in signed]


def each_word(found: WordRows) -> list[list[int]]:
    return [rows.tolist() for rows in torch.tensor_split(found.rows, found.starts[1:-1])]


@given(words=st.lists(st.text(min_size=1, max_size=12), unique=True), lengths=LENGTHS, buckets=BUCKETS)
def test_word_rows_equal_those_of_the_plain_implementation(words, lengths, buckets):
    found, expected = each_word(word_rows(words, lengths, buckets)), plain_word_rows(words, lengths, buckets)
    assert [(own, sorted(rows)) for own, *rows in found] == [(own, sorted(rows)) for own, *rows in expected]


def test_word_rows_do_not_depend_on_the_block_size(monkeypatch):
    together = each_word(word_rows(WORDS, range(2, 5), 1000))
    monkeypatch.setattr(vocabulary_rows, "_BLOCK", 4)
    assert each_word(word_rows(WORDS, range(2, 5), 1000)) == together


@pytest.mark.usefixtures("computed_by")
def test_the_default_is_eight_buckets_per_ngram(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 2)
    tokens, lengths = (each.numpy() for each in joined([[2, 3, 4], [4, 5, 4, 5], [6]]))
    none = np.zeros(3, np.uint8)
    rows = RaggedRows(tokens=tokens, lengths=lengths, labels=none, ratings=none, ends=lengths.cumsum(), row_length=6)
    assert default_buckets(rows, WORDS, 1, range(0)) == 1
    assert default_buckets(rows, WORDS, 2, range(0)) == 8 * 4
    assert default_buckets(rows, WORDS, 3, range(0)) == 8 * 7
    of_words = plain_word_rows(WORDS, range(2, 4), MOST_BUCKETS)
    found = {row for word in range(2, 7) for row in of_words[word][1:]}
    assert default_buckets(rows, WORDS, 1, range(2, 4)) == 8 * len(found)


@pytest.mark.usefixtures("computed_by")
@given(texts=TEXTS, ngrams=st.integers(1, 4), lengths=st.none() | LENGTHS, buckets=BUCKETS)
def test_features_equal_those_of_the_plain_implementation(texts, ngrams, lengths, buckets):
    plain = None if lengths is None else plain_word_rows(WORDS, lengths, buckets)
    expected = [plain_features(text, HASHES, ngrams=ngrams, buckets=buckets, of_words=plain) for text in texts]
    of_words = None if lengths is None else word_rows(WORDS, lengths, buckets)
    found = features(*joined(texts), word_hashes(WORDS), ngrams=ngrams, buckets=buckets, of_words=of_words)
    each = [part.tolist() for part in torch.tensor_split(found.rows, found.ends[:-1])]
    assert [sorted(rows) for rows in each] == [sorted(rows) for rows in expected]


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize(("ngrams", "chars"), [(1, None), (2, None), (3, None), (1, "3-6"), (2, "1-2")])
def test_fasttext_is_a_linear_layer_on_the_mean_of_word_and_ngram_vectors(ngrams, chars):
    torch.manual_seed(0)
    sizes = {"words": len(HASHES), "embedding": 4, "buckets": 50, "outputs": 2}
    settings = {**sizes, "ngrams": ngrams, "char_ngrams": chars, "dropout": 0.0}
    model = models.build("fasttext", settings).eval()
    model.set_vocabulary(WORDS)
    torch.nn.init.normal_(model.last.weight)
    assert models.kind("fasttext").count_weights(settings) == sum(each.numel() for each in model.parameters())
    texts = [[2, 3, 4], [5], [7, 7, 2, 1]]
    of_words = plain_word_rows(WORDS, char_lengths(chars), 50) if chars else None
    rows = [plain_features(text, HASHES, ngrams=ngrams, buckets=50, of_words=of_words) for text in texts]
    expected = torch.stack([model.last(model.vectors[torch.tensor(of_text)].mean(0)) for of_text in rows])
    assert torch.allclose(model(*joined(texts)), expected, atol=1e-6)
    alone = torch.cat([model(*joined([text])) for text in texts])
    assert torch.allclose(model(*joined(texts)), alone, atol=1e-6)
