"""Shoal's model with vectors of neighbouring pairs of words, as fastText has them, for `benchmarks/choices.py`.

A pair's vector is the row of a table that its hash names (Joulin et al. 2017, section 2.2). The vectors are short, so
that the dense optimiser and exchange can carry a large table.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from corpus.text import PADDING
from trainer.classification.models.lstm import LSTMClassifier
from trainer.computing.dropout import Dropout

_ROWS, _WIDTH = 1 << 16, 8
_FIRST, _SECOND, _PRIME = 116_049_371, 2_654_435_761, 2_147_483_647
_SCALE = 1e-3


class Pairs(LSTMClassifier):
    """Of one layer; beside the other parts of a text's vector, the mean of its pairs' vectors."""

    def __init__(self, *, embedding_dropout: float, **settings: Any) -> None:
        super().__init__(embedding_dropout=embedding_dropout, **settings)
        inner, last = self.head
        assert isinstance(inner, nn.Linear)
        self.head = nn.ModuleList([nn.Linear(inner.in_features + _WIDTH, inner.out_features), last])
        self.pairs = nn.Embedding(_ROWS, _WIDTH)
        nn.init.normal_(self.pairs.weight, std=_SCALE)
        self.pair_dropout = Dropout(embedding_dropout, _WIDTH)

    def _one_group(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        first = tokens.t().long()  # (width, rows)
        second = torch.cat([first[1:], torch.full_like(first[:1], PADDING)])
        pairs = self.pair_dropout(self.pairs((first * _FIRST + second * _SECOND) % _PRIME % _ROWS), keys)
        mean = (pairs * (second != PADDING)[:, :, None]).sum(0) / lengths[:, None]  # (rows, _WIDTH)
        vectors = self.embedding_dropout(self.embedding(tokens.t()), keys)
        (lstm,) = self.lstm
        text = self._text(vectors, lstm(vectors)[0], lengths)
        return self._outputs(torch.cat([text, mean], dim=1), keys)


def build(settings: Mapping[str, Any]) -> Pairs:
    return Pairs(**settings)
