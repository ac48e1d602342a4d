"""Word vectors, an LSTM, one vector per text, and two linear layers.

Do not read the LSTM's state after the padding: the last state of a short text would have seen mostly padding. Here only
real words count. The vector of a text is made of the parts that `pooling` names, with + between them: the state after
its `last` word; the `mean` of its words' states; their `max` in each dimension, in which one strong word is not lost
among many; and the mean of the vectors of its `words`, so that the sentiment of single words, which is most of it,
reaches the last layers without the LSTM.
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
"""On a CPU a batch is computed in a few groups of similar length, so that short texts do not wait for long ones; but
not in many, because few rows take nearly as long as some more. The number is a quarter of the root of the rows, and at
most this. Chosen by trying 1 to 32 groups on 64 to 4,000 rows."""

_WORDS = "words"
_HEAD = 32
_WORD_SCALE = 0.1
"""Word vectors start small: rare words then have little influence until the data give it to them (N(0, 1) overfits at
once)."""


class LSTMClassifier(Classifier):
    """The reference's model when `pooling` is last, layers 2, hidden 32 and embedding 100."""

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
        """`words` counts the ids, with padding and unknown. Only the first `vocabulary` words have a vector; None: all.
        `embedding_dropout` drops the same dimensions from all words of a text (Gal and Ghahramani 2016, section 4), and
        so needs few random numbers."""
        super().__init__()
        self._cuts = vocabulary is not None
        self.embedding = nn.Embedding(_rows(words, vocabulary), embedding, padding_idx=PADDING)
        with torch.no_grad():
            self.embedding.weight.mul_(_WORD_SCALE)
        self.lstm = nn.ModuleList(nn.LSTM(hidden if layer else embedding, hidden) for layer in range(layers))
        self._pools = [POOLS[name] for name in pooling.split("+") if name != _WORDS]
        self._beside = _WORDS in pooling.split("+")
        self.head = nn.ModuleList([nn.Linear(_features(embedding, hidden, pooling), _HEAD), nn.Linear(_HEAD, outputs)])
        self.embedding_dropout = Dropout(embedding_dropout, embedding)
        self.dropout_between = Dropout(dropout, hidden)
        self.dropout = Dropout(dropout, _HEAD)

    @staticmethod
    def count_weights(settings: Mapping[str, Any]) -> int:
        embedding, hidden, layers = settings["embedding"], settings["hidden"], settings["layers"]
        features = _features(embedding, hidden, settings["pooling"])
        inputs = embedding + (layers - 1) * hidden
        lstm = 4 * hidden * (inputs + layers * hidden + 2 * layers)
        head = (features + 1) * _HEAD + (_HEAD + 1) * settings["outputs"]
        return int(_rows(settings["words"], settings.get("vocabulary")) * embedding + lstm + head)

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return (self.embedding.weight,)

    @property
    def word_vectors(self) -> Tensor:
        return self.embedding.weight

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        """On a CPU the rows, the longest first, are computed in groups of similar length."""
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
        """(rows, features): the vector of each text."""
        parts = [pool(states, lengths) for pool in self._pools]  # each (rows, hidden)
        if self._beside:
            parts.append(_mean(vectors, lengths))  # (rows, embedding)
        return torch.cat(parts, dim=1)

    def _outputs(self, text: Tensor, keys: Tensor | None) -> Tensor:
        """(rows, outputs): the result of the last layers on texts' vectors (rows, features)."""
        inner, last = self.head
        features = self.dropout(inner(text).relu(), keys)  # (rows, _HEAD)
        outputs: Tensor = last(features)
        return outputs


def spread_padding(tokens: Tensor, lengths: Tensor, words: int) -> Tensor:
    """The ids (rows, width) with those after a row's end spread over all `words` of the table.

    No output or gradient depends on ids in the padding. But a GPU adds up the gradients of one id one after the other,
    also those that it then drops for `padding_idx`: most positions of a batch, most of the time of its step
    (https://github.com/pytorch/pytorch/issues/24912).
    """
    places = torch.arange(tokens.numel(), device=tokens.device).view_as(tokens)
    return torch.where(places % tokens.shape[1] < lengths[:, None], tokens, (places % words).to(tokens.dtype))


def _rows(words: int, vocabulary: int | None) -> int:
    """The rows of the table of word vectors, for so many ids."""
    return words if vocabulary is None else min(words, vocabulary + FIRST_WORD)


def _features(embedding: int, hidden: int, pooling: str) -> int:
    """The length of a text's vector."""
    return sum(embedding if name == _WORDS else hidden for name in pooling.split("+"))


def _last(states: Tensor, lengths: Tensor) -> Tensor:
    """(rows, hidden): the state after each row's last word, of (width, rows, hidden)."""
    return states[lengths - 1, torch.arange(lengths.shape[0], device=states.device)]


def _mean(states: Tensor, lengths: Tensor) -> Tensor:
    """(rows, n): the mean over each row's words, of (width, rows, n)."""
    return (states * _real(states, lengths)).sum(0) / lengths[:, None]


def _max(states: Tensor, lengths: Tensor) -> Tensor:
    """(rows, n): the largest over each row's words, of (width, rows, n)."""
    return states.masked_fill(~_real(states, lengths), -math.inf).amax(0)


def _real(states: Tensor, lengths: Tensor) -> Tensor:
    """(width, rows, 1): which of (width, rows, n) belong to words, not to padding."""
    return (torch.arange(states.shape[0], device=states.device)[:, None] < lengths)[:, :, None]


POOLS = {"last": _last, "mean": _mean, "max": _max}
