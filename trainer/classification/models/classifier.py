"""The interface of a model that classifies texts."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trainer.classification.data import WeightedNgrams


class Classifier(nn.Module, ABC):
    """Maps word ids to some outputs per row, which a loss (losses.py) interprets."""

    reads_whole_texts = False
    """Whether `forward` takes the words of all rows one after the other, (t,), and not padded rows (rows, width)."""
    precision = torch.float32
    """The precision of the layers, where torch finds it sufficient (torch.autocast); weights keep their own type."""

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
        """The table that has a row for each id, and perhaps more: with these word embeddings the model begins."""
        raise NotImplementedError

    def take_ngrams(self, found: WeightedNgrams, constant: Tensor) -> None:
        """Have weights of these n-grams, and begin with the outputs `constant` (outputs,) for every text; before its
        vocabulary, in a new run."""
        raise NotImplementedError

    def read_vocabulary(self, vocabulary: Sequence[str]) -> None:
        """Learn the words of ids, from FIRST_WORD on, if the model needs them; before its first texts."""

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
