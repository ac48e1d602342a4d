"""Linear model of word n-grams and character n-grams, weighted by how well they separate classes.

The value of an n-gram in a text is its count times its ratio. The ratio is the logarithm of how much more frequent the
n-gram is in one class than in the other classes. The ratio of a rare n-gram is reduced. See Wang and Manning (2012),
"Baselines and Bigrams". The vector of a text's word n-gram values is scaled to length 1, and the vector of its
character n-gram values to length `CHARACTERS`. The weights are learned by logistic regression with Adagrad, because
Adagrad's steps do not depend on the scale of a value.

The bias is initialised to the class frequencies, and the number of words in a text has its own weight. Otherwise the
weights of all n-grams would learn that one class is more frequent, and texts with more n-grams would seem to belong to
this class.

On few training rows, the outputs are shrunk towards the class frequencies, except in training (strength.py).

ngram_counts.py selects the n-grams, and ngram_index.py finds them in texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trainer.classification.data import TextData, WeightedNgrams
from trainer.classification.losses import Loss
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.linear_options import LinearOptions
from trainer.classification.models.ngram_counts import CLASSES, MOST_NGRAMS, SPREAD, fit_ngrams
from trainer.classification.models.ngram_index import NgramIndex
from trainer.classification.models.ngrams import ngram_loops
from trainer.computing.row_gradients import computed_by_numba, mean_of_rows, new_table

CHARACTERS = 0.5
"""Length to which the vector of a text's character n-gram values is scaled."""
_WORDS = 100
"""Number of words in a text for which the feature "number of words" is 0."""
_MOST_WEIGHTS = 64_000_000
"""Largest number of weights. An n-gram has one weight per class, so many classes permit fewer n-grams."""
_TINY = 1e-12


class Linear(Classifier):
    """Linear classifier. The table `weights` has one row per n-gram in `keys`, already multiplied by the n-gram's
    ratio.

    Row 0 stands for all n-grams that are not in `keys`.
    """

    reads_whole_texts = True
    fits_strength = True
    shift: Tensor
    keys: Tensor
    ratios: Tensor
    longest: Tensor
    squares: Tensor

    def __init__(self, *, words: int, ngrams: int, buckets: int, outputs: int) -> None:
        """`words`: the number of word ids, including the ids of padding and of unknown words.

        `ngrams`: the largest number of words in an n-gram. `buckets`: the number of n-grams that have weights.
        """
        super().__init__()
        self._ngrams = ngrams
        self._vocabulary: Sequence[str] | None = None
        self.index = NgramIndex(words)
        self.weights = nn.Parameter(new_table(buckets, outputs).zero_())
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.by_words = nn.Parameter(torch.zeros(outputs))
        self.register_buffer("keys", torch.full((buckets,), torch.iinfo(torch.int64).max))
        self.register_buffer("ratios", torch.zeros(buckets, 1))
        self.register_buffer("longest", torch.ones((), dtype=torch.int64))
        self.register_buffer("strength", torch.ones(()))
        self.register_buffer("shift", torch.zeros(outputs))
        self.register_buffer("squares", torch.zeros(buckets, 1), persistent=False)

    @staticmethod
    def count_weights(settings: Mapping[str, Any]) -> int:
        """Return how many numbers the model's state contains: weights, keys, ratios of n-grams, and smaller tensors."""
        return int(settings["buckets"] * (settings["outputs"] + 2) + 3 * settings["outputs"] + 2)

    @classmethod
    def fit_settings(cls, options: LinearOptions, data: TextData, loss: Loss) -> tuple[LinearOptions, TextData]:
        most = options.buckets or min(MOST_NGRAMS, _MOST_WEIGHTS // loss.outputs)
        ngrams = fit_ngrams(data.training, data.vocabulary, ngrams=options.ngrams, most=most)
        return replace(options, buckets=len(ngrams.keys)), replace(data, ngrams=ngrams)

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        return (self.weights,)

    @property
    def row_rates(self) -> tuple[Tensor, ...]:
        return (self.ratios,)

    def set_ngrams(self, ngrams: WeightedNgrams, constant: Tensor, base: Tensor) -> None:
        """Set the n-grams and the initial outputs. `self.keys` must have an entry for each n-gram."""
        self.bias.data.copy_(constant)
        self.strength.fill_(ngrams.strength)
        self.shift.copy_((1 - ngrams.strength) * base)
        self.longest.fill_(ngrams.longest)
        self.keys[: len(ngrams.keys)] = torch.from_numpy(ngrams.keys)
        self.ratios[: len(ngrams.keys), 0] = torch.from_numpy(ngrams.ratios)

    def set_vocabulary(self, vocabulary: Sequence[str]) -> None:
        self._index_ngrams(vocabulary)
        self.index.set_vocabulary(vocabulary, self.keys)

    def restore_vocabulary(self, vocabulary: Sequence[str], stored: Mapping[str, Tensor]) -> None:
        self._index_ngrams(vocabulary)
        self.index.set_stored(stored, self.keys)

    def _index_ngrams(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self.index.set_keys(self.keys)
        self.squares = self.ratios.square()

    def vocabulary_tensors(self) -> dict[str, Tensor]:
        return self.index.tensors()

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        result = super().load_state_dict(*args, **kwargs)
        if self._vocabulary is not None:
            self.set_vocabulary(self._vocabulary)
        return result

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:  # noqa: ARG002
        ends = lengths.cumsum(0)
        if torch.onnx.is_in_onnx_export():
            return self._classify_for_onnx(tokens, lengths, ends)
        if computed_by_numba(tokens):
            of_words = torch.zeros(len(tokens), self._ngrams, dtype=torch.int32)
            index = self.index
            arrays = (tokens, ends, index.hashes, index.own, index.firsts, self.keys, of_words)
            bits = (index.shift, np.uint64(SPREAD % (1 << 64)), np.uint64(~CLASSES % (1 << 64)))
            ngram_loops().write_known_ngrams(*(each.numpy() for each in arrays), bits)
        else:
            texts = torch.searchsorted(ends, torch.arange(len(tokens), device=tokens.device), right=True)
            of_words = self.index.ngram_rows(tokens, texts, self.keys, words=self._ngrams)
        of_ngrams = _scaled_sum(self.weights, self.squares, of_words.flatten(), self._ngrams * ends)
        return self._outputs(lengths, of_ngrams, self._scaled_sum_of_chars(tokens, lengths))

    def _outputs(self, lengths: Tensor, of_words: Tensor, of_chars: Tensor) -> Tensor:
        """Return the outputs (n, outputs) for the scaled sums of word and of character n-grams, each (n, outputs).

        If there are several outputs, each of them is scaled down, because Adagrad has a single rate for all weights of
        a row. The number of words is limited to that of the longest training row: otherwise a text's length could
        decide its class.
        """
        number = 2 * ((lengths[:, None].minimum(self.longest).to(self.bias.dtype) / _WORDS).sqrt() - 1)
        outputs = self.bias + number * self.by_words + (of_words + CHARACTERS * of_chars) / sqrt(len(self.bias))
        return outputs if self.training else self.shift + self.strength * outputs

    def _scaled_sum_of_chars(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the scaled sums (n, outputs) of the character n-grams in texts with `lengths` (n,) and `tokens` (t,).

        Repeated words are computed only once.
        """
        words, places = torch.unique(tokens, return_inverse=True)
        index = self.index
        starts = index.starts[words]
        counts = index.starts[words + 1] - starts
        ends = counts.cumsum(0)
        far = (starts - ends + counts).repeat_interleave(counts)  # (r,): index in `index.rows` minus index in `rows`
        rows = index.rows[torch.arange(len(far), device=far.device) + far]
        counts = counts[:, None]
        with torch.no_grad():
            squares = mean_of_rows(self.squares, rows, ends) * counts
            squares = torch.segment_reduce(squares[places], "sum", lengths=lengths, unsafe=True)
        sums = torch.segment_reduce(
            (mean_of_rows(self.weights, rows, ends) * counts)[places], "sum", lengths=lengths, unsafe=True
        )
        return _divide(sums, squares.sqrt())

    def _classify_for_onnx(self, tokens: Tensor, lengths: Tensor, ends: Tensor) -> Tensor:
        """Return the result of `classify`, using only ONNX operations and no constants from the traced example."""
        places, numbers = (torch.ones_like(each, dtype=torch.int64).cumsum(0) - 1 for each in (tokens, ends))
        texts = (places[:, None] >= ends).sum(1)  # (t,)
        member = (texts == numbers[:, None]).to(self.weights.dtype)  # (n, t)
        rows = self.index.ngram_rows(tokens, texts, self.keys, words=self._ngrams).long()
        values = torch.cat([self.weights, self.squares], 1)
        of_words = member @ values[rows].sum(1)
        of_chars = member @ self.index.sums_of_chars(values.detach())[tokens]
        scaled = (_divide(each[:, :-1], each[:, -1:].sqrt()) for each in (of_words, of_chars))
        return self._outputs(lengths, *scaled)


def _scaled_sum(weights: Tensor, squared_ratios: Tensor, rows: Tensor, ends: Tensor) -> Tensor:
    """Return each text's sum of n-gram weights (n, outputs), divided by the length of the text's vector of
    values."""
    counts = torch.diff(ends, prepend=ends.new_zeros(1))[:, None]
    with torch.no_grad():
        squares = mean_of_rows(squared_ratios, rows, ends)
    means: Tensor = mean_of_rows(weights, rows, ends)
    return means * _divide(counts, (counts * squares).sqrt())


def _divide(values: Tensor, lengths: Tensor) -> Tensor:
    """Return the texts' `values` divided by the `lengths` of their vectors; 0 for a text without a known n-gram."""
    return values / lengths.clamp(min=_TINY) * (lengths > 0)
