"""A classifier on a pretrained language model (ULMFiT: Howard and Ruder 2018).

A text is read as the language model reads it: an END, then its words, in each direction that the model has. The last
state, the largest value of each dimension and the mean over the words (concat pooling) go to two linear layers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from trainer.classification.models.classifier import Classifier
from trainer.classification.models.lstm import POOLS, in_groups
from trainer.computing.dropout import Dropout
from trainer.language.model import END, EncoderSettings, LanguageModel, Regularisation

_POOLS = ("last", "max", "mean")
_HEAD = 50
_LEAK = 0.1
"""The slope of the head's units below 0. A plain ReLU has none, and where the states of a language model are nearly the
same for all texts, a few large steps left all units below 0 for all of them, from where nothing is learnt."""
_DISCRIMINATION = 2.6
"""How many times smaller the learning rate of a layer is than that of the layer above it."""


class Pretrained(Classifier):
    """The layers of a language model, and a head."""

    def __init__(
        self,
        *,
        words: int,
        embedding: int,
        hidden: int,
        layers: int,
        direction: str,
        output_weights: str,
        dropout: float,
        embedding_dropout: float,
        outputs: int,
    ) -> None:
        """`words` counts the ids, with padding and unknown. See `EncoderSettings`."""
        super().__init__()
        settings = _encoder_settings(words, embedding, hidden, layers, direction, output_weights)
        self.language = LanguageModel(settings, Regularisation(inputs=embedding_dropout, between=dropout))
        self.language.drop_outputs()
        features = _features(settings)
        self.head = nn.ModuleList([nn.Linear(features, _HEAD), nn.Linear(_HEAD, outputs)])
        self.feature_dropout, self.head_dropout = Dropout(dropout, features), Dropout(dropout, _HEAD)
        self.frozen = 0
        """Groups of `rate_groups`, from the last one on, that stand still."""

    @property
    def tables(self) -> tuple[Tensor, ...]:
        return (self.language.embedding.weight,)

    @property
    def word_vectors(self) -> Tensor:
        return self.language.embedding.weight

    def rate_groups(self) -> Sequence[tuple[Sequence[Tensor], float]]:
        """The parameters from the head down to the embeddings, each group with its share of the learning rate."""
        depths = range(self.language.settings.layers)
        layers = [self.language.of_layer(depth) for depth in reversed(depths)]
        groups: list[list[Tensor]] = [[*self.head.parameters()], *layers, [self.language.embedding.weight]]
        return [(group, _DISCRIMINATION**-place) for place, group in enumerate(groups)]

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        return in_groups(self._one_group, tokens.long(), lengths, keys)

    def _one_group(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        parts = []
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.frozen <= self.language.settings.layers):
            read = [self._read(tokens, lengths, direction) for direction in self.language.settings.directions]
            outputs, _ = self.language(read, None, keys)
        for states in outputs:
            floats = states.float()
            parts += [POOLS[pool](floats, lengths + 1) for pool in _POOLS]  # with the END
        inner, last = self.head
        features = self.feature_dropout(torch.cat(parts, dim=1), keys)
        hidden = self.head_dropout(leaky_relu(inner(features), _LEAK), keys)
        found: Tensor = last(hidden)
        return found

    def _read(self, tokens: Tensor, lengths: Tensor, direction: str) -> Tensor:
        """(width + 1, rows): an END, then the words of texts (rows, width) as this direction reads them."""
        if direction == "backward":
            places = lengths[:, None] - 1 - torch.arange(tokens.shape[1], device=tokens.device)
            tokens = tokens.gather(1, places.clamp(min=0)) * (places >= 0)
        return torch.cat([torch.full_like(tokens[:, :1], END), tokens], dim=1).t().contiguous()


def build(settings: Mapping[str, Any]) -> Pretrained:
    return Pretrained(**settings)


def weights(settings: Mapping[str, Any]) -> int:
    """The number of weights of a model that `build` returns."""
    names = ("words", "embedding", "hidden", "layers", "direction", "output_weights")
    encoder = _encoder_settings(*(settings[name] for name in names))
    head = (_features(encoder) + 1) * _HEAD + (_HEAD + 1) * settings["outputs"]
    return int(encoder.reading_weights + head)


def _encoder_settings(
    words: int, embedding: int, hidden: int, layers: int, direction: str, output_weights: str
) -> EncoderSettings:
    return EncoderSettings(
        words=words,
        embedding=embedding,
        hidden=hidden,
        layers=layers,
        direction=direction,
        tied=output_weights == "tied",
    )


def _features(settings: EncoderSettings) -> int:
    """The length of a text's vector."""
    return len(_POOLS) * len(settings.directions) * settings.widths[-1]
