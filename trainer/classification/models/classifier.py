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


class Classifier(nn.Module, ABC):
    """Model that maps the word ids of each row to outputs. A loss (losses.py) converts outputs to probabilities."""

    reads_whole_texts = False
    """True if `forward` takes the concatenated words (t,) of all rows instead of padded rows (rows, width)."""
    fits_strength = False
    """True if the model has a strength, which is chosen on few training rows (strength.py)."""
    strength: Tensor
    """Factor () of the outputs' distance from the class frequencies, if `fits_strength`."""
    precision = torch.float32
    """Precision in which torch.autocast computes the layers. The data type of the weights does not change."""

    @staticmethod
    def count_weights(settings: Mapping[str, Any]) -> int:
        """Return the number of weights in a model with these settings.

        The number is compared with a model file, so that memory is not allocated for weights that the file lacks.
        """
        raise NotImplementedError

    @classmethod
    def fit_settings(cls, options: Any, data: TextData, loss: Loss) -> tuple[Any, TextData]:  # noqa: ARG003
        """Return the model's options and the data of a new run, with the settings that depend on its training rows."""
        return options, data

    @property
    def tables(self) -> tuple[Tensor, ...]:
        """Tables of word vectors. Ranks exchange only those rows that belong to words in the global batch
        (exchange.py).

        All other rows must have the gradient 0, so no other part of the model is allowed to use these tables.
        """
        return ()

    @property
    def sparse_tables(self) -> tuple[Tensor, ...]:
        """Tables with sparse gradients, which contain only touched rows (computing/row_gradients.py)."""
        return ()

    @property
    def row_rates(self) -> tuple[Tensor | None, ...]:
        """For each sparse table, factors (rows, 1) of Adagrad's learning rates for its rows; None: equal rates."""
        return (None,) * len(self.sparse_tables)

    @property
    def word_vectors(self) -> Tensor:
        """Table into which `--embeddings` writes pretrained vectors. Its first rows are those of the word ids."""
        raise NotImplementedError

    def set_ngrams(self, ngrams: WeightedNgrams, constant: Tensor, base: Tensor) -> None:
        """Set the n-grams from `fit_settings`, and initialise the model so that every text has the outputs `constant`.

        `constant` (outputs,). `base` (outputs,): the outputs of strength 0. In a new run, this method is called before
        `set_vocabulary`.
        """
        raise NotImplementedError

    def set_vocabulary(self, vocabulary: Sequence[str]) -> None:
        """Set the words of the ids from FIRST_WORD on, if the model needs them. Must be called before `forward`."""

    def restore_vocabulary(self, vocabulary: Sequence[str], stored: Mapping[str, Tensor]) -> None:
        """Set the words like `set_vocabulary`, with the `vocabulary_tensors` from a model file.

        Called only if there are such tensors. Raises ValueError if they do not fit the vocabulary.
        """
        raise NotImplementedError

    def vocabulary_tensors(self) -> dict[str, Tensor]:
        """Return tensors that a model file has, because `set_vocabulary` would compute them slowly."""
        return {}

    def direct_gradients(self, rows: Rows, loss: Loss, *, seed: int, device: torch.device) -> DirectGradients | None:
        """Return a function that computes the gradients of `loss` for these rows without autograd.

        Returns None if the model has no such function. `seed`: the seed of dropout.
        """

    def forward(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None = None) -> Tensor:
        """Return the outputs (rows, outputs) for texts.

        `tokens` (rows, width) int32: word ids, padded with 0 at the end; if the model reads whole texts, `tokens` (t,)
        are the concatenated ids without padding. `lengths` (rows,) int64: the number of words in each row. The width
        can exceed the longest length, and padding must not change the result. `keys` (rows,): the index of each row's
        dropout mask (dropout.py); None: no dropout.
        """
        with torch.autocast(tokens.device.type, self.precision, enabled=self.precision != torch.float32):
            outputs = self.classify(tokens, lengths, keys)
        return outputs.to(next(self.parameters()).dtype)

    @abstractmethod
    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        """Return the outputs of `forward`, in any floating-point type."""
