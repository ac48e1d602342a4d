"""fastText (Joulin et al. 2017): the mean of the vectors of a text's words and n-grams, and one linear layer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from shoal_balance import IntArray
from torch import Tensor, nn

from corpus.text import FIRST_WORD
from trainer.classification.data import TextData
from trainer.classification.losses import Loss
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.fasttext_options import FastTextOptions
from trainer.classification.models.ngrams import (
    default_buckets,
    features,
    ngram_hashes,
    ngram_loops,
    ngram_rows,
    word_hashes,
)
from trainer.classification.rows import RaggedRows, Rows
from trainer.clock import BACKWARD, FORWARD, StepTimer
from trainer.computing import dropout
from trainer.computing.dropout import Dropout
from trainer.computing.gradients import DirectGradients, Piece
from trainer.computing.row_gradients import FactoredGradient, mean_of_rows, new_table


class FastText(Classifier):
    """fastText classifier. The table `vectors` has one row per word id, followed by one row per bucket of n-grams."""

    reads_whole_texts = True
    hashes: Tensor

    def __init__(self, *, words: int, embedding: int, ngrams: int, buckets: int, dropout: float, outputs: int) -> None:
        """`words`: the number of word ids, including the ids of padding and of unknown words.

        `ngrams`: the largest number of words in an n-gram; 1: no n-grams, only words.
        """
        super().__init__()
        self.ngrams, self.buckets = ngrams, buckets
        # As in fastText: with small uniform vectors and a zero last layer, the first steps learn only the last layer.
        self.vectors = nn.Parameter(new_table(_rows(words, ngrams, buckets), embedding))
        nn.init.uniform_(self.vectors, -1.0 / embedding, 1.0 / embedding)
        self.last = nn.Linear(embedding, outputs, bias=False)
        nn.init.zeros_(self.last.weight)
        self.dropout = Dropout(dropout, embedding)
        self.register_buffer("hashes", torch.zeros(words, dtype=torch.int64), persistent=False)

    @staticmethod
    def count_weights(settings: Mapping[str, Any]) -> int:
        rows = _rows(settings["words"], settings["ngrams"], settings["buckets"])
        return int(settings["embedding"] * (rows + settings["outputs"]))

    @classmethod
    def fit_settings(cls, options: FastTextOptions, data: TextData, loss: Loss) -> tuple[FastTextOptions, TextData]:  # noqa: ARG003
        if options.buckets is None:
            options = replace(options, buckets=default_buckets(data.training, data.vocabulary, options.ngrams))
        return options, data

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        return (self.vectors,)

    @property
    def word_vectors(self) -> Tensor:
        return self.vectors

    def set_vocabulary(self, vocabulary: Sequence[str]) -> None:
        assert len(vocabulary) + FIRST_WORD == len(self.hashes)
        if self.ngrams > 1:
            self.hashes.copy_(word_hashes(vocabulary))

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        if torch.onnx.is_in_onnx_export():
            return self.last(self._means_for_onnx(tokens, lengths))  # type: ignore[no-any-return]
        if self.ngrams > 1:
            tokens, ends = features(tokens, lengths, self.hashes, ngrams=self.ngrams, buckets=self.buckets)
        else:
            ends = lengths.cumsum(0)
        outputs: Tensor = self.last(self.dropout(mean_of_rows(self.vectors, tokens, ends), keys))
        return outputs

    def direct_gradients(self, rows: Rows, loss: Loss, *, seed: int, device: torch.device) -> DirectGradients | None:
        on_cpu = device.type == "cpu" and rows.device_tokens is None
        return _Direct(rows, loss, seed) if isinstance(rows, RaggedRows) and on_cpu else None

    def _means_for_onnx(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the mean vector of each text, using only ONNX operations and no constants from the traced example."""
        places, rows = (torch.ones_like(each, dtype=torch.int64).cumsum(0) - 1 for each in (tokens, lengths))
        texts = (places[:, None] >= lengths.cumsum(0)).sum(1)  # (t,)
        member = (texts == rows[:, None]).to(self.vectors.dtype)  # (n, t)
        sums, counts = member @ self.vectors[tokens], lengths
        hashes = self.hashes[tokens]
        for far in range(1, self.ngrams):
            hashes = ngram_hashes(hashes, self.hashes[tokens], far)
            inside = member[:, far:] * (texts[far:] == texts[:-far])  # (n, t - far)
            sums = sums + inside @ self.vectors[ngram_rows(hashes, len(self.hashes), self.buckets)]
            counts = counts + (lengths - far).clamp(min=0)
        return sums / counts[:, None]


def _rows(words: int, ngrams: int, buckets: int) -> int:
    return words + (buckets if ngrams > 1 else 0)


class _Direct:
    """Function that computes the gradients of `FastText` without autograd (`DirectGradients`).

    It uses explicit formulas on a CPU. The computation of a step on short texts takes microseconds. Autograd takes a
    hundred times as long, because it creates an object for each operation. Change this class together with
    `FastText.classify`: a test compares both.
    """

    fewest = 512

    def __init__(self, rows: RaggedRows, loss: Loss, seed: int) -> None:
        self._rows, self._loss, self._seed = rows, loss, seed

    def __call__(self, model: nn.Module, numbers: IntArray, batch_rows: int, step: int, timer: StepTimer) -> Piece:
        """See `DirectGradients`."""
        assert isinstance(model, FastText)
        rows, loss = self._rows, self._loss
        table, hashes = model.vectors.detach().numpy(), model.hashes.numpy()
        where = (rows.tokens, rows.ends, rows.lengths, numbers)
        values, ids, lengths = ngram_loops().text_means(*where, hashes, model.ngrams, np.uint64(model.buckets), table)
        if model.dropout.share:
            scale = values.dtype.type(1.0 / (1.0 - model.dropout.share))
            mask = model.dropout.pool.numpy()[dropout.keys(self._seed, step, numbers)] * scale
            values = values * mask
        weights = model.last.weight.detach().numpy()  # (outputs, columns)
        outputs = values @ weights.T
        timer.end_phase(FORWARD)
        total, by_outputs = loss.sum_with_gradient(outputs, rows.labels[numbers], rows.ratings[numbers])
        by_outputs /= by_outputs.dtype.type(batch_rows)
        by_means = by_outputs @ weights
        if model.dropout.share:
            by_means *= mask
        made_of = FactoredGradient(*map(torch.from_numpy, (ids, lengths, by_means)))
        timer.end_phase(BACKWARD)
        scalar = torch.from_numpy(np.asarray(total / batch_rows, dtype=weights.dtype))
        return Piece(scalar, (torch.from_numpy(by_outputs.T @ values),), [[made_of]])
