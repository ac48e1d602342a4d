"""What the trainer asks of a model."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Classifier(nn.Module, ABC):
    """Word ids to some numbers a row, which a loss (losses.py) gives their meaning."""

    embedding: nn.Embedding
    """The table of word vectors. Only the rows of the words in a global batch have a gradient; the ranks rely on it
    when they exchange no others (exchange.py), so nothing else may touch this table."""

    precision = torch.float32
    """In which layers compute, where torch finds that enough (torch.autocast); weights keep their own type."""

    def forward(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None = None) -> Tensor:
        """(rows, outputs) of `tokens` (rows, width) int32, padded with 0 at the end, and `lengths` (rows,) int64.

        Widths may exceed the longest length; padding must not change the result. `keys` (rows,) name the rows' masks
        of dropout (dropout.py); without them nothing is dropped.
        """
        with torch.autocast(tokens.device.type, self.precision, enabled=self.precision != torch.float32):
            outputs = self.classify(tokens, lengths, keys)
        return outputs.to(self.embedding.weight.dtype)

    @abstractmethod
    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        """The same, in whatever precision."""
