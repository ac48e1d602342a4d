"""Shoal's model with an LSTM that reads a text from both ends, for `benchmarks/choices.py`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.lstm import LSTMClassifier


class _BothWays(nn.Module):
    """Two LSTMs of half the size, one from each end: as many numbers a word as one from the beginning."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.there, self.back = nn.LSTM(size, hidden // 2), nn.LSTM(size, hidden // 2)
        self.lengths: Tensor | None = None

    def forward(self, vectors: Tensor) -> tuple[Tensor, None]:
        assert self.lengths is not None
        there, _ = self.there(vectors)
        back, _ = self.back(_turned(vectors, self.lengths))
        return torch.cat([there, _turned(back, self.lengths)], dim=2), None


def _turned(states: Tensor, lengths: Tensor) -> Tensor:
    """(width, rows, n), each row's words in the opposite order, and its padding where it was."""
    time = torch.arange(len(states), device=states.device)[:, None]  # (width, 1)
    turned = torch.where(time < lengths, lengths - 1 - time, time)  # (width, rows)
    return states.gather(0, turned[:, :, None].expand_as(states))


class Bidirectional(LSTMClassifier):
    """Of one layer."""

    def __init__(self, *, embedding: int, hidden: int, layers: int, **settings: Any) -> None:
        super().__init__(embedding=embedding, hidden=hidden, layers=layers, **settings)
        self.both = _BothWays(embedding, hidden)
        self.lstm = nn.ModuleList([self.both])

    def _one_group(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        self.both.lengths = lengths
        return super()._one_group(tokens, lengths, keys)


def build(settings: Mapping[str, Any]) -> Bidirectional:
    return Bidirectional(**settings)
