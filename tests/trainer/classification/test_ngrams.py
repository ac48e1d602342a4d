"""Features of texts equal those of a plain implementation, and the output for a text depends on that text only."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpus.tokens import token_hash
from trainer.classification import models
from trainer.classification.models import ngrams as module
from trainer.classification.models.ngrams import default_buckets, features, plain_features, word_hashes
from trainer.classification.rows import RaggedRows
from trainer.computing import row_gradients

WORDS = ["good", "not", "é", "x" * 40, "日本", "!"]
HASHES = [token_hash(word.encode()) for word in ("", "", *WORDS)]
BUCKETS = st.sampled_from([1, 7, 1000, 2_000_000])
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


@pytest.mark.usefixtures("computed_by")
def test_the_default_is_eight_buckets_per_ngram(monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 2)
    tokens, lengths = (each.numpy() for each in joined([[2, 3, 4], [4, 5, 4, 5], [6]]))
    none = np.zeros(3, np.uint8)
    rows = RaggedRows(tokens=tokens, lengths=lengths, labels=none, ratings=none, ends=lengths.cumsum(), row_length=6)
    assert [default_buckets(rows, WORDS, ngrams) for ngrams in (1, 2, 3)] == [1, 8 * 4, 8 * 7]


@pytest.mark.usefixtures("computed_by")
@given(texts=TEXTS, ngrams=st.integers(1, 4), buckets=BUCKETS)
def test_features_equal_those_of_the_plain_implementation(texts, ngrams, buckets):
    expected = [plain_features(text, HASHES, ngrams=ngrams, buckets=buckets) for text in texts]
    found = features(*joined(texts), word_hashes(WORDS), ngrams=ngrams, buckets=buckets)
    each = [part.tolist() for part in torch.tensor_split(found.rows, found.ends[:-1])]
    assert [sorted(rows) for rows in each] == [sorted(rows) for rows in expected]


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_fasttext_is_a_linear_layer_on_the_mean_of_word_and_ngram_vectors(ngrams):
    torch.manual_seed(0)
    sizes = {"words": len(HASHES), "embedding": 4, "buckets": 50, "outputs": 2}
    settings = {**sizes, "ngrams": ngrams, "dropout": 0.0}
    model = models.build("fasttext", settings).eval()
    model.set_vocabulary(WORDS)
    torch.nn.init.normal_(model.last.weight)
    assert models.kind("fasttext").count_weights(settings) == sum(each.numel() for each in model.parameters())
    texts = [[2, 3, 4], [5], [7, 7, 2, 1]]
    rows = [plain_features(text, HASHES, ngrams=ngrams, buckets=50) for text in texts]
    expected = torch.stack([model.last(model.vectors[torch.tensor(of_text)].mean(0)) for of_text in rows])
    assert torch.allclose(model(*joined(texts)), expected, atol=1e-6)
    alone = torch.cat([model(*joined([text])) for text in texts])
    assert torch.allclose(model(*joined(texts)), alone, atol=1e-6)
