"""fastText (Joulin et al. 2017): the mean of the vectors of a text's words and n-grams, and one linear layer.

On request the n-grams of a word's characters have vectors, too (Bojanowski et al. 2017).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray
from torch import Tensor, nn

from corpus.text import FIRST_WORD
from trainer.classification.losses import Floats
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.ngrams import features, ngram_hashes, ngram_loops, ngram_rows
from trainer.classification.models.vocabulary_rows import WordRows, word_hashes, word_rows
from trainer.classification.rows import RaggedRows
from trainer.computing.dropout import Dropout
from trainer.computing.row_gradients import mean_of_rows, new_table
from trainer.options.classifier_options import char_lengths
from trainer.registry import MODELS


class TextMeans(NamedTuple):
    """The mean vectors of n texts, `values` (n, columns), with the `ids` (t,) int32 of the rows of the table that make
    them, side by side, `lengths` (n,) of them for each."""

    values: Floats
    ids: npt.NDArray[np.int32]
    lengths: IntArray


class FastText(Classifier):
    """A row of `vectors` for each id, then one for each bucket of n-grams."""

    reads_whole_texts = MODELS["fasttext"].reads_whole_texts
    hashes: Tensor
    rows: Tensor
    starts: Tensor

    def __init__(
        self,
        *,
        words: int,
        embedding: int,
        ngrams: int,
        buckets: int,
        dropout: float,
        outputs: int,
        char_ngrams: str | None = None,
    ) -> None:
        """`words` counts the ids, with padding and unknown. `ngrams`: the most words of an n-gram; 1: words alone.
        `char_ngrams`: the fewest and most characters of an n-gram, such as 3-6; None: none have vectors."""
        super().__init__()
        self._ngrams, self._buckets = ngrams, buckets
        self._char_lengths = char_lengths(char_ngrams) if char_ngrams else range(0)
        # Small and uniform, and nothing in the last layer, as in fastText: the first steps learn that alone.
        self.vectors = nn.Parameter(new_table(_rows(words, ngrams, buckets, char_ngrams), embedding))
        nn.init.uniform_(self.vectors, -1.0 / embedding, 1.0 / embedding)
        self.last = nn.Linear(embedding, outputs, bias=False)
        nn.init.zeros_(self.last.weight)
        self.dropout = Dropout(dropout, embedding)
        self.register_buffer("hashes", torch.zeros(words, dtype=torch.int64), persistent=False)
        if self._char_lengths:
            self.register_buffer("rows", torch.zeros(0, dtype=torch.int32), persistent=False)
            self.register_buffer("starts", torch.zeros(0, dtype=torch.int64), persistent=False)

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        return (self.vectors,)

    @property
    def word_vectors(self) -> Tensor:
        return self.vectors

    def read_vocabulary(self, vocabulary: Sequence[str]) -> None:
        assert len(vocabulary) + FIRST_WORD == len(self.hashes)
        if self._ngrams > 1:
            self.hashes.copy_(word_hashes(vocabulary))
        if self._char_lengths:
            found = word_rows(vocabulary, self._char_lengths, self._buckets)
            self.rows, self.starts = (each.to(self.hashes.device) for each in found)

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        if torch.onnx.is_in_onnx_export():
            return self.last(self._means_by_matrices(tokens, lengths))  # type: ignore[no-any-return]
        if self._ngrams > 1 or self._char_lengths:
            of_words = WordRows(self.rows, self.starts) if self._char_lengths else None
            tokens, ends = features(
                tokens, lengths, self.hashes, ngrams=self._ngrams, buckets=self._buckets, of_words=of_words
            )
        else:
            ends = lengths.cumsum(0)
        outputs: Tensor = self.last(self.dropout(mean_of_rows(self.vectors, tokens, ends), keys))
        return outputs

    @property
    def has_words_alone(self) -> bool:
        """Whether no n-grams of characters have vectors."""
        return not self._char_lengths

    def means(self, rows: RaggedRows, numbers: IntArray) -> TextMeans:
        """The mean vectors of these rows (n,), on a CPU, of a model that `has_words_alone`."""
        table, hashes = self.vectors.detach().numpy(), self.hashes.numpy()
        where = (rows.tokens, rows.ends, rows.lengths, numbers)
        found = ngram_loops().text_means(*where, hashes, self._ngrams, np.uint64(self._buckets), table)
        return TextMeans(*found)

    def _means_by_matrices(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """The mean vector of each text by operations that ONNX has, without a number that depends on the example."""
        places, rows = (torch.ones_like(each, dtype=torch.int64).cumsum(0) - 1 for each in (tokens, lengths))
        texts = (places[:, None] >= lengths.cumsum(0)).sum(1)  # (t,)
        member = (texts == rows[:, None]).to(self.vectors.dtype)  # (n, t)
        vectors: Tensor = self.vectors
        counts = lengths
        if self._char_lengths:
            vectors, numbers = self._vectors_with_char_ngrams()
            counts = (member @ numbers[tokens])[:, 0]
        sums = member @ vectors[tokens]
        found = self.hashes[tokens]
        for far in range(1, self._ngrams):
            found = ngram_hashes(found, self.hashes[tokens], far)
            inside = member[:, far:] * (texts[far:] == texts[:-far])  # (n, t - far)
            sums = sums + inside @ vectors[ngram_rows(found, len(self.hashes), self._buckets)]
            counts = counts + (lengths - far).clamp(min=0)
        return sums / counts[:, None]

    def _vectors_with_char_ngrams(self) -> tuple[Tensor, Tensor]:
        """The table of vectors, whose rows of words are here the sums of all rows of each word, and the number of
        these, (words, 1). They are constants in ONNX."""
        vectors, rows, starts = (each.detach().numpy() for each in (self.vectors, self.rows, self.starts))
        sums = np.stack([np.add.reduceat(column[rows], starts[:-1]) for column in vectors.T], axis=1)
        numbers = np.diff(starts)[:, None].astype(vectors.dtype)
        return torch.from_numpy(np.concatenate([sums, vectors[len(sums) :]])), torch.from_numpy(numbers)


def build(settings: Mapping[str, Any]) -> FastText:
    return FastText(**settings)


def weights(settings: Mapping[str, Any]) -> int:
    """The number of weights of a model that `build` returns."""
    rows = _rows(settings["words"], settings["ngrams"], settings["buckets"], settings.get("char_ngrams"))
    return int(settings["embedding"] * (rows + settings["outputs"]))


def _rows(words: int, ngrams: int, buckets: int, char_ngrams: str | None) -> int:
    return words + (buckets if ngrams > 1 or char_ngrams else 0)
