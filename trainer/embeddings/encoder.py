"""Encoder, which computes a vector for any word with a trained character model, and its file `encoder.safetensors`.

The file contains the weights and, as metadata, the spelling and the sizes of the layers. The file is untrusted input:
memory is allocated only for the weights that the file really contains.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from common.errors import DataError
from common.json_values import from_json, parse_json_object
from trainer.embeddings.char_lstm import MOST_CHARACTERS, CharLSTM, Spelling
from trainer.embeddings.vectors import Matrix
from trainer.output import archive
from trainer.output.archive import DamagedError

FORMAT = 1
_METADATA = "shoal"
_BLOCK = 2048
"""Number of words that are encoded at once."""


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """Settings that determine the shapes of a character model."""

    characters: str
    character_embedding: int
    hidden: int
    layers: int
    size: int
    """Number of dimensions of a word's vector."""

    def build(self) -> CharLSTM:
        """Return a new model with random weights, drawn from torch's default generator."""
        return CharLSTM(
            Spelling(self.characters).size,
            character_embedding=self.character_embedding,
            hidden=self.hidden,
            layers=self.layers,
            size=self.size,
        )

    @property
    def weights(self) -> int:
        """Number of weights in a model with these settings."""
        inputs = self.character_embedding + (self.layers - 1) * self.hidden
        lstm = 4 * self.hidden * (inputs + self.layers * self.hidden + 2 * self.layers)
        spelling = Spelling(self.characters).size * self.character_embedding
        return spelling + lstm + 2 * (self.hidden + 1) * self.size


class WordEncoder:
    """Trained character model that encodes words as vectors."""

    def __init__(self, settings: EncoderSettings, model: CharLSTM) -> None:
        self.settings, self.model = settings, model
        self._spelling = Spelling(settings.characters)

    @torch.no_grad()
    def vectors(self, words: Sequence[str]) -> Matrix:
        """Return the embeddings (words, size) of `words`, which must not be empty strings."""
        vectors = np.empty((len(words), self.settings.size), np.float32)
        shortest_first = np.argsort(list(map(len, words)), kind="stable")  # a block takes as long as its longest word
        for begin in range(0, len(words), _BLOCK):
            block = shortest_first[begin : begin + _BLOCK]
            states = self.model(self._spelling.letters([words[number] for number in block]))
            vectors[block] = self.model.centres(states).cpu().numpy()
        return vectors

    def write(self, path: Path) -> None:
        """Write the encoder to a file. Raises OSError or SafetensorError."""
        header = json.dumps({"format": FORMAT, **asdict(self.settings)})
        state = {name: tensor.cpu().contiguous() for name, tensor in self.model.state_dict().items()}
        save_file(state, path, metadata={_METADATA: header})


def read_encoder(path: Path) -> WordEncoder:
    """Return the encoder from a file. Raises DataError if the file is unreadable or invalid."""
    try:
        with safe_open(path, framework="pt") as stored:
            settings = _settings(stored.metadata() or {})
            names = stored.keys()
            if sum(prod(stored.get_slice(name).get_shape()) for name in names) != settings.weights:
                raise DamagedError("its number of weights does not match the sizes of its layers")
            model, state = settings.build(), {name: stored.get_tensor(name) for name in names}
        archive.require_tensors(state, model.state_dict())
        model.load_state_dict(state)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (DamagedError, DataError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} was not written by `shoal train`, or is damaged: {reason}; copy it again") from error
    return WordEncoder(settings, model.eval())


def _settings(metadata: Mapping[str, str]) -> EncoderSettings:
    values: dict[str, Any] = parse_json_object(metadata.get(_METADATA, "{}"))
    if values.pop("format", None) != FORMAT:
        raise DamagedError(f"its format is not {FORMAT}, the only format that this version of Shoal reads")
    settings = from_json(EncoderSettings, values)
    if min(settings.character_embedding, settings.hidden, settings.layers, settings.size) < 1:
        raise DamagedError("the sizes of its layers must be above 0")
    if len(settings.characters) > MOST_CHARACTERS or len(set(settings.characters)) < len(settings.characters):
        raise DamagedError("its list of characters is too long, or repeats a character")
    return settings
