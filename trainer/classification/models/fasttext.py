"""fastText (Joulin et al. 2017): the mean of the vectors of a text's words and n-grams, and one linear layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from corpus.text import FIRST_WORD
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.ngrams import features, ngram_hashes, ngram_rows, word_hashes
from trainer.computing.dropout import Dropout
from trainer.computing.row_gradients import mean_of_rows, new_table


class FastText(Classifier):
    """A row of `vectors` for each id, then one for each bucket of n-grams."""

    reads_whole_texts = True
    hashes: Tensor

    def __init__(self, *, words: int, embedding: int, ngrams: int, buckets: int, dropout: float, outputs: int) -> None:
        """`words` counts the ids, with padding and unknown. `ngrams`: the most words of an n-gram; 1: words alone."""
        super().__init__()
        self._ngrams, self._buckets = ngrams, buckets
        # Small and uniform, and nothing in the last layer, as in fastText: the first steps learn that alone.
        self.vectors = nn.Parameter(new_table(_rows(words, ngrams, buckets), embedding))
        nn.init.uniform_(self.vectors, -1.0 / embedding, 1.0 / embedding)
        self.last = nn.Linear(embedding, outputs, bias=False)
        nn.init.zeros_(self.last.weight)
        self.dropout = Dropout(dropout, embedding)
        self.register_buffer("hashes", torch.zeros(words, dtype=torch.int64), persistent=False)

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        return (self.vectors,)

    def read_vocabulary(self, vocabulary: Sequence[str]) -> None:
        assert len(vocabulary) + FIRST_WORD == len(self.hashes)
        if self._ngrams > 1:
            self.hashes.copy_(word_hashes(vocabulary))

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        if torch.onnx.is_in_onnx_export():
            return self.last(self._means_by_matrices(tokens, lengths))  # type: ignore[no-any-return]
        if self._ngrams > 1:
            tokens, ends = features(tokens, lengths, self.hashes, ngrams=self._ngrams, buckets=self._buckets)
        else:
            ends = lengths.cumsum(0)
        outputs: Tensor = self.last(self.dropout(mean_of_rows(self.vectors, tokens, ends), keys))
        return outputs

    def _means_by_matrices(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The mean vector of each text by operations that ONNX has, without a number that depends on the example."""
        places, rows = (torch.ones_like(each, dtype=torch.int64).cumsum(0) - 1 for each in (tokens, lengths))
        texts = (places[:, None] >= lengths.cumsum(0)).sum(1)  # (t,)
        member = (texts == rows[:, None]).to(self.vectors.dtype)  # (n, t)
        sums, counts = member @ self.vectors[tokens], lengths
        found = self.hashes[tokens]
        for far in range(1, self._ngrams):
            found = ngram_hashes(found, self.hashes[tokens], far)
            inside = member[:, far:] * (texts[far:] == texts[:-far])  # (n, t - far)
            sums = sums + inside @ self.vectors[ngram_rows(found, len(self.hashes), self._buckets)]
            counts = counts + (lengths - far).clamp(min=0)
        return sums / counts[:, None]


def build(settings: Mapping[str, Any]) -> FastText:
    return FastText(**settings)


def weights(settings: Mapping[str, Any]) -> int:
    """The number of weights of a model that `build` returns."""
    rows = _rows(settings["words"], settings["ngrams"], settings["buckets"])
    return int(settings["embedding"] * (rows + settings["outputs"]))


def _rows(words: int, ngrams: int, buckets: int) -> int:
    return words + (buckets if ngrams > 1 else 0)
