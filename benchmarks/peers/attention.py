"""Shoal's model with attention over the states of a text's words, for `benchmarks/choices.py`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trainer.classification.models.lstm import LSTMClassifier


class Attention(LSTMClassifier):
    """Beside the other parts of a text's vector, a mean of its states with weights that depend on the states."""

    def __init__(self, *, hidden: int, **settings: Any) -> None:
        super().__init__(hidden=hidden, **settings)
        inner, last = self.head
        assert isinstance(inner, nn.Linear)
        self.head = nn.ModuleList([nn.Linear(inner.in_features + hidden, inner.out_features), last])
        self.weigh = nn.Linear(hidden, 1)

    def _text(self, vectors: Tensor, states: Tensor, lengths: Tensor) -> Tensor:
        real = torch.arange(len(states), device=states.device)[:, None] < lengths  # (width, rows)
        weights = self.weigh(torch.tanh(states))[:, :, 0].masked_fill(~real, -torch.inf).softmax(0)
        attended = (states * weights[:, :, None]).sum(0)  # (rows, hidden)
        return torch.cat([super()._text(vectors, states, lengths), attended], dim=1)


def build(settings: Mapping[str, Any]) -> Attention:
    return Attention(**settings)
