"""The interface of a model that classifies texts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trainer.classification.data import TextData, WeightedNgrams
from trainer.classification.losses import Loss
from trainer.classification.rows import Rows
from trainer.computing.gradients import DirectGradients
from trainer.config import TrainConfig


class Classifier(nn.Module, ABC):
    """Maps word ids to some outputs per row, which a loss (losses.py) interprets."""

    reads_whole_texts = False
    """Whether `forward` takes the words of all rows one after the other, (t,), and not padded rows (rows, width)."""
    precision = torch.float32
    """The precision of the layers, where torch finds it sufficient (torch.autocast); weights keep their own type."""

    @staticmethod
    def count_weights(settings: Mapping[str, Any]) -> int:
        """How many numbers a model of these settings has: nothing is built for a file that is too small."""
        raise NotImplementedError

    @classmethod
    def fitted(cls, config: TrainConfig, data: TextData, loss: Loss) -> tuple[TrainConfig, TextData]:  # noqa: ARG003
        """The configuration of a new run with the settings that follow from its training rows; and the data with what
        a new model takes of them."""
        return config, data

    @property
    def tables(self) -> tuple[Tensor, ...]:
        """Tables of word vectors of which only the rows of words in a global batch have a gradient: the ranks exchange
        no others (exchange.py). So nothing else may use them."""
        return ()

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        """Tables whose gradients have the touched rows alone (computing/row_gradients.py)."""
        return ()

    @property
    def row_rates(self) -> tuple[Tensor | None, ...]:
        """For each sparse table the rates (rows, 1) of its rows under Adagrad, as multiples; None: they are equal."""
        return (None,) * len(self.sparse_tables)

    @property
    def word_vectors(self) -> Tensor:
        """Where the option `embeddings` is one of the model's: the table that has a row for each id, and perhaps more,
        with whose word embeddings it begins."""
        raise NotImplementedError

    def take_ngrams(self, found: WeightedNgrams, constant: Tensor) -> None:
        """Have weights of the n-grams that `fitted` found, and begin with the outputs `constant` (outputs,) for every
        text; before its vocabulary, in a new run."""
        raise NotImplementedError

    def read_vocabulary(self, vocabulary: Sequence[str]) -> None:
        """Learn the words of ids, from FIRST_WORD on, if the model needs them; before its first texts."""

    def direct_gradients(self, rows: Rows, loss: Loss, *, seed: int, device: torch.device) -> DirectGradients | None:  # noqa: ARG002
        """What computes the gradients of `loss` for these rows without autograd; None: nothing does. `seed`: that of
        dropout."""
        return None

    def forward(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None = None) -> Tensor:
        """(rows, outputs) for `tokens` (rows, width) int32, padded with 0 at the end, and `lengths` (rows,) int64.

        Widths may exceed the longest length; padding must not change the result. If the model reads whole texts,
        `tokens` are (t,), without padding. `keys` (rows,) select the rows' masks of dropout (dropout.py); without them
        nothing is dropped.
        """
        with torch.autocast(tokens.device.type, self.precision, enabled=self.precision != torch.float32):
            outputs = self.classify(tokens, lengths, keys)
        return outputs.to(next(self.parameters()).dtype)

    @abstractmethod
    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        """The same, in any precision."""
