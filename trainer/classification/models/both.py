"""An LSTM and fastText's model, which learn from rows in turn, and classify by the mean of their outputs.

Each time that a row is seen, its key chooses which of the two learns from it: the LSTM, without the words that it loses
by dropout, or fastText's model, from all of its words, because neighbours that are none in the text would make other
n-grams. Each learns by its own loss. A key depends on seed, step and row, so it is the same on any rank.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from trainer.classification.models import fasttext, lstm
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.fasttext import FastText
from trainer.classification.models.lstm import LSTMClassifier

_EMBEDDING = 10
"""Dimensions of fastText's vectors."""
_SCALE = 10.0
"""fastText's vectors are so many times smaller than those of the model alone, and its outputs are multiplied by it: so
its vectors move faster than the LSTM's word vectors at the same rate."""


class Both(Classifier):
    """`LSTMClassifier` and `FastText` on the same padded rows."""

    keeps_words_of_odd_keys = True

    def __init__(self, *, words: int, ngrams: int, buckets: int, outputs: int, **of_the_lstm: Any) -> None:
        """`of_the_lstm`: the settings of `LSTMClassifier` that are not among the others."""
        super().__init__()
        self.lstm = LSTMClassifier(words=words, outputs=outputs, **of_the_lstm)
        self.fasttext = FastText(
            words=words, embedding=_EMBEDDING, ngrams=ngrams, buckets=buckets, dropout=0.0, outputs=outputs
        )
        with torch.no_grad():
            self.fasttext.vectors.div_(_SCALE)

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return self.lstm.tables

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        return self.fasttext.sparse_tables

    @property
    def word_vectors(self) -> Tensor:
        """Those of the LSTM: fastText's vectors are of another size."""
        return self.lstm.word_vectors

    def read_vocabulary(self, vocabulary: Sequence[str]) -> None:
        self.fasttext.read_vocabulary(vocabulary)

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        if keys is None:
            return (self.lstm.classify(tokens, lengths, None) + self._by_ngrams(tokens, lengths)) / 2
        even, odd = (torch.nonzero(keys % 2 == rest)[:, 0] for rest in (0, 1))
        some = even if len(even) else odd[:1]  # its gradient is then zero: the LSTM cannot compute no rows
        by_lstm = self.lstm.classify(tokens[some], lengths[some], keys[some])[: len(even)]
        by_ngrams = self._by_ngrams(tokens[odd], lengths[odd])
        return torch.cat([by_lstm, by_ngrams])[torch.cat([even, odd]).argsort()]

    def _by_ngrams(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """(rows, outputs): those of fastText's model; there may be no rows."""
        real = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]  # (rows, width)
        return _SCALE * self.fasttext.classify(tokens[real], lengths, None)


def build(settings: Mapping[str, Any]) -> Both:
    return Both(**settings)


def weights(settings: Mapping[str, Any]) -> int:
    """The number of weights of a model that `build` returns."""
    return lstm.weights(settings) + fasttext.weights({**settings, "embedding": _EMBEDDING})
