"""Words and n-grams of texts are those of the plain rule; the output for a text does not depend on the others."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from corpus.tokens import token_hash
from trainer.classification import models
from trainer.classification.models import ngrams as module
from trainer.classification.models.ngrams import features, plain_features, word_hashes
from trainer.computing import row_gradients

WORDS = ["good", "not", "é", "x" * 40, "日本", "!"]
HASHES = [token_hash(word.encode()) for word in ("", "", *WORDS)]
TEXTS = st.lists(st.lists(st.integers(1, len(HASHES) - 1), min_size=1, max_size=8), min_size=1, max_size=5)


@pytest.fixture(params=["numba", "torch"])
def computed_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, of which GPUs have the second."""
    for each in (module, row_gradients):
        monkeypatch.setattr(each, "computed_by_numba", lambda _tensor: request.param == "numba")


def joined(texts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = [word for text in texts for word in text]
    return torch.tensor(tokens, dtype=torch.int32), torch.tensor([len(text) for text in texts])


@given(words=st.lists(st.text(min_size=1, max_size=30), unique=True))
def test_the_hashes_of_words_are_those_of_the_plain_rule(words: list[str]) -> None:
    signed = [token_hash(word.encode()) for word in ("", "", *words)]
    assert word_hashes(words).tolist() == [each - 2**32 if each >= 2**31 else each for each in signed]


@pytest.mark.usefixtures("computed_by")
@given(texts=TEXTS, ngrams=st.integers(1, 4), buckets=st.sampled_from([1, 7, 1000, 2_000_000]))
def test_the_features_of_texts_are_those_of_the_plain_rule(texts: list[list[int]], ngrams: int, buckets: int) -> None:
    found = features(*joined(texts), word_hashes(WORDS), ngrams=ngrams, buckets=buckets)
    each = [part.tolist() for part in torch.tensor_split(found.rows, found.ends[:-1])]
    assert [sorted(rows) for rows in each] == [
        sorted(plain_features(text, HASHES, ngrams=ngrams, buckets=buckets)) for text in texts
    ]


@pytest.mark.usefixtures("computed_by")
@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_fasttext_is_the_mean_of_vectors_of_words_and_ngrams_and_a_linear_layer(ngrams: int) -> None:
    torch.manual_seed(0)
    settings = {"words": len(HASHES), "embedding": 4, "ngrams": ngrams, "buckets": 50, "dropout": 0.0, "outputs": 2}
    model = models.build("fasttext", settings).eval()
    model.read_vocabulary(WORDS)
    torch.nn.init.normal_(model.last.weight)
    assert models.weights("fasttext", settings) == sum(each.numel() for each in model.parameters())
    texts = [[2, 3, 4], [5], [7, 7, 2, 1]]
    rows = [plain_features(text, HASHES, ngrams=ngrams, buckets=50) for text in texts]
    expected = torch.stack([model.last(model.vectors[torch.tensor(of_text)].mean(0)) for of_text in rows])
    assert torch.allclose(model(*joined(texts)), expected, atol=1e-6)
    alone = torch.cat([model(*joined([text])) for text in texts])
    assert torch.allclose(model(*joined(texts)), alone, atol=1e-6)
