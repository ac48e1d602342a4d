"""LSTM classifier: word vectors, an LSTM, pooling to one vector per text, and two linear layers.

A text's vector has three parts: the mean of the LSTM's states after each word; the maximum of these states in each
dimension, which keeps the effect of a single strong word; and the mean of the word vectors, which passes the sentiment
of single words to the linear layers directly. With the setting `pooling=last` it is only the state after the last word.

Only real words count. Do not use the state after the padding: for a short text, the LSTM would have read mostly
padding.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from corpus.text import FIRST_WORD, PADDING, UNKNOWN
from trainer.classification.models.classifier import Classifier
from trainer.computing.dropout import Dropout

_MOST_GROUPS = 8
"""Largest number of groups into which a batch is divided on a CPU.

A group has rows of similar length, so that short texts need little padding. Too many groups are slow, because small
groups take nearly as long as larger ones. The number of groups is a quarter of the square root of the number of rows.
For 64 to 4,000 rows, no other number from 1 to 32 was faster.
"""

_LAST = "last"
_HEAD = 32
_WORD_SCALE = 0.1
"""Standard deviation of initial word vectors. With small vectors, rare words have little influence at first. With
N(0, 1), the model overfits immediately."""


class LSTMClassifier(Classifier):
    """LSTM classifier. The reference model has pooling `last`, 2 layers, hidden size 32 and embedding size 100."""

    def __init__(
        self,
        *,
        words: int,
        embedding: int,
        hidden: int,
        layers: int,
        pooling: str,
        dropout: float,
        embedding_dropout: float,
        outputs: int,
        vocabulary: int | None = None,
    ) -> None:
        """`words`: the number of word ids, including the ids of padding and of unknown words.

        `vocabulary`: the number of most frequent words that have their own vector; None: every word has its own vector.
        `embedding_dropout`: share of the dimensions that are dropped. The same dimensions are dropped from all words of
        a text (Gal and Ghahramani 2016, section 4), so that few random numbers are needed.
        """
        super().__init__()
        self._cuts = vocabulary is not None
        self.embedding = nn.Embedding(_rows(words, vocabulary), embedding, padding_idx=PADDING)
        with torch.no_grad():
            self.embedding.weight.mul_(_WORD_SCALE)
        self.lstm = nn.ModuleList(nn.LSTM(hidden if layer else embedding, hidden) for layer in range(layers))
        self._pools_last = pooling == _LAST
        self.head = nn.ModuleList([nn.Linear(_features(embedding, hidden, pooling), _HEAD), nn.Linear(_HEAD, outputs)])
        self.embedding_dropout = Dropout(embedding_dropout, embedding)
        self.dropout_between = Dropout(dropout, hidden)
        self.dropout = Dropout(dropout, _HEAD)

    @staticmethod
    def count_weights(settings: Mapping[str, Any]) -> int:
        embedding, hidden, layers = settings["embedding"], settings["hidden"], settings["layers"]
        inputs = embedding + (layers - 1) * hidden
        lstm = 4 * hidden * (inputs + layers * hidden + 2 * layers)
        head = (_features(embedding, hidden, settings["pooling"]) + 1) * _HEAD + (_HEAD + 1) * settings["outputs"]
        return int(_rows(settings["words"], settings.get("vocabulary")) * embedding + lstm + head)

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return (self.embedding.weight,)

    @property
    def word_vectors(self) -> Tensor:
        return self.embedding.weight

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        """Return the outputs. On a CPU, rows are computed in groups of similar length, so they must be sorted by
        length.
        """
        if tokens.is_cuda or torch.onnx.is_in_onnx_export():
            return self._one_group(tokens, lengths, keys)
        groups = max(1, min(_MOST_GROUPS, round(math.sqrt(len(tokens)) / 4)))
        some_keys = keys.chunk(groups) if keys is not None else [None] * groups
        each = zip(tokens.chunk(groups), lengths.chunk(groups), some_keys, strict=True)
        return torch.cat([self._one_group(some[:, : int(long.max())], long, key) for some, long, key in each])

    def _one_group(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        if self._cuts:
            tokens = tokens.masked_fill(tokens >= self.embedding.num_embeddings, UNKNOWN)
        if self.training and tokens.is_cuda:
            tokens = spread_padding(tokens, lengths, self.embedding.num_embeddings)
        vectors = states = self.embedding_dropout(self.embedding(tokens.t()), keys)  # (width, rows, embedding)
        for number, layer in enumerate(self.lstm):
            if number:
                states = self.dropout_between.at_each_time(states, keys)
            states, _ = layer(states)  # (width, rows, hidden)
        return self._outputs(self._text(vectors, states, lengths), keys)

    def _text(self, vectors: Tensor, states: Tensor, lengths: Tensor) -> Tensor:
        """Return the pooled vector of each text (rows, features)."""
        if self._pools_last:
            return states[lengths - 1, torch.arange(lengths.shape[0], device=states.device)]
        return torch.cat([_mean(states, lengths), maximum(states, lengths), _mean(vectors, lengths)], dim=1)

    def _outputs(self, text: Tensor, keys: Tensor | None) -> Tensor:
        """Return the outputs (rows, outputs) of the linear layers for the vectors of texts (rows, features)."""
        inner, last = self.head
        features = self.dropout(inner(text).relu(), keys)  # (rows, _HEAD)
        outputs: Tensor = last(features)
        return outputs


def spread_padding(tokens: Tensor, lengths: Tensor, words: int) -> Tensor:
    """Return the ids (rows, width) with padding replaced by ids that are spread over all `words` of the table.

    No output or gradient depends on the ids in the padding. But a GPU sums the gradients of an id sequentially, even of
    the id `padding_idx`, for which it then drops the sum. Padding is most of a batch, so this sum would take most of
    the step's time (https://github.com/pytorch/pytorch/issues/24912).
    """
    places = torch.arange(tokens.numel(), device=tokens.device).view_as(tokens)
    return torch.where(places % tokens.shape[1] < lengths[:, None], tokens, (places % words).to(tokens.dtype))


def _rows(words: int, vocabulary: int | None) -> int:
    """Return the number of rows in the table of word vectors. `words`, `vocabulary`: see `LSTMClassifier`."""
    return words if vocabulary is None else min(words, vocabulary + FIRST_WORD)


def _features(embedding: int, hidden: int, pooling: str) -> int:
    """Return the number of dimensions of a text's pooled vector."""
    return hidden if pooling == _LAST else 2 * hidden + embedding


def _mean(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean (rows, n) over each row's words, from `states` (width, rows, n)."""
    return (states * _real(states, lengths)).sum(0) / lengths[:, None]


def maximum(states: Tensor, lengths: Tensor) -> Tensor:
    """Return the maximum (rows, n) over each row's words, from `states` (width, rows, n)."""
    return states.masked_fill(~_real(states, lengths), -math.inf).amax(0)


def _real(states: Tensor, lengths: Tensor) -> Tensor:
    """Return a mask (width, rows, 1): True for words, False for padding."""
    return (torch.arange(states.shape[0], device=states.device)[:, None] < lengths)[:, :, None]
