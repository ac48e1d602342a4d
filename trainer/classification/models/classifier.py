"""Interface of text classifiers."""

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
    """Maps word ids to outputs per row, which a loss (losses.py) interprets."""

    reads_whole_texts = False
    """True if `forward` takes the concatenated words of all rows, (t,), instead of padded rows (rows, width)."""
    precision = torch.float32
    """Precision of the layers for torch.autocast; weights keep their own type."""

    @staticmethod
    def count_weights(settings: Mapping[str, Any]) -> int:
        """Return the number of weights of a model with these settings. A model is not allocated for a file that is too
        small."""
        raise NotImplementedError

    @classmethod
    def fit_settings(cls, config: TrainConfig, data: TextData, loss: Loss) -> tuple[TrainConfig, TextData]:  # noqa: ARG003
        """Return the configuration and data of a new run, with the settings that follow from its training rows."""
        return config, data

    @property
    def tables(self) -> tuple[Tensor, ...]:
        """Tables of word vectors with gradients only for words of the global batch: ranks exchange only those rows
        (exchange.py).

        So no other part of the model may use these tables.
        """
        return ()

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        """Tables with gradients that contain only touched rows (computing/row_gradients.py)."""
        return ()

    @property
    def row_rates(self) -> tuple[Tensor | None, ...]:
        """Factors (rows, 1) for Adagrad's rate of each row, for each sparse table; None: equal rates."""
        return (None,) * len(self.sparse_tables)

    @property
    def word_vectors(self) -> Tensor:
        """Table with a row for each id, and possibly more, in which the option `embeddings` sets pretrained vectors."""
        raise NotImplementedError

    def set_ngrams(self, found: WeightedNgrams, constant: Tensor) -> None:
        """Set the n-grams that `fit_settings` found, and initialise the model to the outputs `constant` (outputs,) for
        every text.

        Called in a new run, before `set_vocabulary`.
        """
        raise NotImplementedError

    def set_vocabulary(self, vocabulary: Sequence[str]) -> None:
        """Set the words of the ids from FIRST_WORD on, if the model needs them. Called before its first texts."""

    def direct_gradients(self, rows: Rows, loss: Loss, *, seed: int, device: torch.device) -> DirectGradients | None:  # noqa: ARG002
        """Return a computer of the gradients of `loss` for these rows without autograd, or None. `seed`: the seed of
        dropout."""
        return None

    def forward(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None = None) -> Tensor:
        """Return outputs (rows, outputs) for `tokens` (rows, width) int32, padded with 0 at the end, and `lengths`
        (rows,) int64.

        Widths may exceed the longest length; padding must not change the result. If the model reads whole texts,
        `tokens` are (t,), without padding. `keys` (rows,) select the rows' masks of dropout (dropout.py); None: no
        dropout.
        """
        with torch.autocast(tokens.device.type, self.precision, enabled=self.precision != torch.float32):
            outputs = self.classify(tokens, lengths, keys)
        return outputs.to(next(self.parameters()).dtype)

    @abstractmethod
    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        """Return the outputs of `forward` in any precision."""
