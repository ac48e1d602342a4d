"""Shoal's model with an LSTM that reads a text from both ends, for `benchmarks/choices.py`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trainer.classification.models.lstm import LSTMClassifier


def _turned(states: Tensor, lengths: Tensor) -> Tensor:
    """(width, rows, n), each row's words in the opposite order, and its padding where it was."""
    time = torch.arange(len(states), device=states.device)[:, None]  # (width, 1)
    turned = torch.where(time < lengths, lengths - 1 - time, time)  # (width, rows)
    return states.gather(0, turned[:, :, None].expand_as(states))


class Bidirectional(LSTMClassifier):
    """Of one layer: two LSTMs of half the size, one from each end, so as many numbers a word as one from one end."""

    def __init__(self, *, embedding: int, hidden: int, layers: int, **settings: Any) -> None:
        super().__init__(embedding=embedding, hidden=hidden, layers=layers, **settings)
        self.lstm = nn.ModuleList(nn.LSTM(embedding, hidden // 2) for _ in range(2))

    def _one_group(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        vectors = self.embedding_dropout(self.embedding(tokens.t()), keys)  # (width, rows, embedding)
        there, back = (
            lstm(each)[0] for lstm, each in zip(self.lstm, (vectors, _turned(vectors, lengths)), strict=True)
        )
        states = torch.cat([there, _turned(back, lengths)], dim=2)  # (width, rows, hidden)
        return self._outputs(self._text(vectors, states, lengths), keys)


def build(settings: Mapping[str, Any]) -> Bidirectional:
    return Bidirectional(**settings)
