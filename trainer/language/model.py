"""The language model: an AWD-LSTM (Merity et al. 2018), in one direction or in both.

Words have embeddings, LSTM layers read them, and the outputs of the last layer predict the next word by a softmax. That
of words has the embeddings as its weights (tied: Inan et al. 2017, Press and Wolf 2017), so that the last layer is as
wide as they are. A byte has weights of its own there, and the last layer is as wide as the others. A model of both
directions has an LSTM for each, as in ELMo (Peters et al. 2018): embeddings and softmax are common to them.

Regularisation: dropout of the same dimensions at all times of a row (variational: Gal and Ghahramani 2016), between all
layers; of whole words, and of single recurrent weights (DropConnect), each the same for all rows of a step.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from corpus.text import PADDING
from trainer.computing.dropout import Dropout, StepDropout

END = PADDING
"""The id before the first word of a text, and after its last one."""
_SMALL = 0.1
"""Embeddings start uniformly within this range, as in AWD-LSTM."""

DIRECTIONS = {"forward": ("forward",), "backward": ("backward",), "both": ("forward", "backward")}
"""The LSTMs of a model, by the option `--direction`."""


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """The layers of a language model."""

    words: int
    """The ids, with those before the first word (corpus/text.py)."""
    embedding: int
    hidden: int
    layers: int
    direction: str
    """One of DIRECTIONS."""
    tied: bool
    """Whether the softmax has the embeddings as its weights."""

    @property
    def directions(self) -> tuple[str, ...]:
        """The direction of each LSTM."""
        return DIRECTIONS[self.direction]

    @property
    def widths(self) -> tuple[int, ...]:
        """The dimensions of each layer's state."""
        last = self.embedding if self.tied else self.hidden
        return (*[self.hidden] * (self.layers - 1), last)

    @property
    def state_width(self) -> int:
        """The numbers of a row's state: of each direction and layer the hidden state, and the cell's."""
        return 2 * len(self.directions) * sum(self.widths)

    @property
    def reading_weights(self) -> int:
        """The numbers of a model of these settings, without the softmax."""
        before, lstm = self.embedding, 0
        for width in self.widths:
            lstm += 4 * width * (before + width + 2)
            before = width
        return self.words * self.embedding + len(self.directions) * lstm

    @property
    def weights(self) -> int:
        """The numbers of a model of these settings."""
        return self.reading_weights + self.words * (1 if self.tied else self.widths[-1] + 1)


@dataclass(frozen=True, kw_only=True)
class Regularisation:
    """The shares that are dropped."""

    inputs: float = 0.0
    """Dimensions of a row's embeddings."""
    between: float = 0.0
    """Dimensions of a row's states, between layers and after the last one."""
    words: float = 0.0
    """Words, everywhere in a step; the embeddings of the others are scaled up."""
    weights: float = 0.0
    """Recurrent weights."""


class Encoder(nn.Module):
    """The LSTM layers of one direction."""

    def __init__(self, settings: EncoderSettings, regularisation: Regularisation) -> None:
        super().__init__()
        before = (settings.embedding, *settings.widths[:-1])
        self.layers = nn.ModuleList(nn.LSTM(*sizes) for sizes in zip(before, settings.widths, strict=True))
        self.dropouts = nn.ModuleList(Dropout(regularisation.between, width) for width in settings.widths)
        self.weight_drops = nn.ModuleList(
            StepDropout(regularisation.weights, 4 * width * width) for width in settings.widths
        )

    def forward(
        self, vectors: Tensor, states: Tensor | None, keys: Tensor | None, shift: int | None
    ) -> tuple[Tensor, Tensor]:
        """The outputs of the last layer (times, rows, width), and the states (rows, state) after the last time.

        `vectors` (times, rows, embedding), in the precision of the layers; `states` those before the first time, None:
        zeros; `keys` (rows,) and `shift` select what is dropped (dropout.py), None: nothing.
        """
        rows, outputs, ends, first = vectors.shape[1], vectors, [], 0
        for layer, dropout, weight_drop in zip(self.layers, self.dropouts, self.weight_drops, strict=True):
            assert isinstance(layer, nn.LSTM)
            width = layer.hidden_size
            if states is None:
                before = (outputs.new_zeros(1, rows, width),) * 2
            else:
                own = states[:, first : first + 2 * width].to(outputs.dtype)
                before = (own[None, :, :width].contiguous(), own[None, :, width:].contiguous())
            first += 2 * width
            weights: list[Tensor] = list(layer.parameters())  # of the inputs, recurrent, biases of both
            weights[1] = weight_drop(weights[1].flatten(), shift).view_as(weights[1])
            outputs, *after = _lstm(outputs, before, [each.to(outputs.dtype) for each in weights])
            ends += [each[0].detach().float() for each in after]
            outputs = dropout(outputs, keys)
        return outputs, torch.cat(ends, dim=1)


class LanguageModel(nn.Module):
    """Embeddings, an Encoder for each direction, and the weights of the softmax."""

    def __init__(self, settings: EncoderSettings, regularisation: Regularisation | None = None) -> None:
        super().__init__()
        regularisation = regularisation or Regularisation()
        self.settings = settings
        self.precision = torch.float32
        """That of the layers, whose weights are kept in float32."""
        self.embedding = nn.Embedding(settings.words, settings.embedding)
        nn.init.uniform_(self.embedding.weight, -_SMALL, _SMALL)
        self.encoders = nn.ModuleList(Encoder(settings, regularisation) for _ in settings.directions)
        self.input_dropout = Dropout(regularisation.inputs, settings.embedding)
        self.word_dropout = StepDropout(regularisation.words, settings.words)
        self.output_bias: nn.Parameter | None = nn.Parameter(torch.zeros(settings.words))
        self.own_outputs = None if settings.tied else nn.Parameter(_uniform(settings.words, settings.widths[-1]))

    def of_layer(self, depth: int) -> list[Tensor]:
        """The parameters of an LSTM layer, counted from 0, in all directions."""
        return [each for name, each in self.named_parameters() if f".layers.{depth}." in name]

    def drop_outputs(self) -> None:
        """Drop the softmax, of a model that is to read alone."""
        self.output_bias = self.own_outputs = None

    @property
    def outputs(self) -> tuple[Tensor, Tensor]:
        """The weights of the softmax (words, width), and its bias (words,)."""
        assert self.output_bias is not None
        return self.embedding.weight if self.own_outputs is None else self.own_outputs, self.output_bias

    def forward(
        self,
        tokens: Sequence[Tensor],
        states: Tensor | None = None,
        keys: Tensor | None = None,
        shift: int | None = None,
    ) -> tuple[list[Tensor], Tensor]:
        """For each direction the outputs of its last layer (times, rows, width); and the states (rows, state_width)
        after the last time. `tokens`: for each direction (times, rows), in the order in which it reads them."""
        outputs, ends, of_one = [], [], self.settings.state_width // len(self.encoders)
        for number, (encoder, read) in enumerate(zip(self.encoders, tokens, strict=True)):
            vectors = self.embedding(read)
            if shift is not None and self.word_dropout.share:
                kept = self.word_dropout(vectors.new_ones(self.settings.words), shift)
                vectors = vectors * kept[read][:, :, None]
            vectors = self.input_dropout(vectors, keys).to(self.precision)
            own = None if states is None else states[:, number * of_one : (number + 1) * of_one]
            found, after = encoder(vectors, own, keys, shift)
            outputs.append(found)
            ends.append(after)
        return outputs, torch.cat(ends, dim=1)


def _lstm(inputs: Tensor, before: tuple[Tensor, Tensor], weights: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """One layer, by the function behind nn.LSTM: its weights need not be parameters. On a GPU it is cuDNN's."""
    with warnings.catch_warnings():
        # cuDNN gathers weights that were dropped, or converted, at each step: little beside the step itself.
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk")
        outputs, hidden, cell = torch._VF.lstm(inputs, before, weights, True, 1, 0.0, True, False, False)
    return outputs, hidden, cell


def _uniform(*shape: int) -> Tensor:
    return torch.empty(shape).uniform_(-_SMALL, _SMALL)
