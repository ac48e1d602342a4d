"""The interface of a model that classifies texts."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Classifier(nn.Module, ABC):
    """Maps word ids to some outputs per row, which a loss (losses.py) interprets."""

    embedding: nn.Embedding
    """The table of word vectors. Only the rows of words in a global batch may have a gradient: the ranks exchange no
    others (exchange.py). So nothing else may use this table."""

    precision = torch.float32
    """The precision of the layers, where torch finds it sufficient (torch.autocast); weights keep their own type."""

    def forward(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None = None) -> Tensor:
        """(rows, outputs) for `tokens` (rows, width) int32, padded with 0 at the end, and `lengths` (rows,) int64.

        Widths may exceed the longest length; padding must not change the result. `keys` (rows,) select the rows' masks
        of dropout (dropout.py); without them nothing is dropped.
        """
        with torch.autocast(tokens.device.type, self.precision, enabled=self.precision != torch.float32):
            outputs = self.classify(tokens, lengths, keys)
        return outputs.to(self.embedding.weight.dtype)

    @abstractmethod
    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        """The same, in any precision."""
