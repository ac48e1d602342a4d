"""File `encoder.safetensors`: a trained character model, which computes a vector for any word.

The file contains the weights and, as metadata, the settings of the model. The file is untrusted input: memory is
allocated only for the weights that the file really contains.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from common.errors import DataError
from common.json_values import from_json, parse_json_object
from trainer.embeddings.char_lstm import CharLSTM, EncoderSettings
from trainer.output import archive
from trainer.output.archive import DamagedError

FORMAT = 1
_METADATA = "shoal"


def write_encoder(path: Path, model: CharLSTM) -> None:
    """Write a character model to a file. Raises OSError or SafetensorError."""
    header = json.dumps({"format": FORMAT, **asdict(model.settings)})
    state = {name: tensor.cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, path, metadata={_METADATA: header})


def read_encoder(path: Path) -> CharLSTM:
    """Return the character model from a file. Raises DataError if the file is unreadable or invalid."""
    try:
        with safe_open(path, framework="pt") as stored:
            settings = _settings(stored.metadata() or {})
            names = stored.keys()
            state = {name: stored.get_tensor(name) for name in names}
        with torch.device("meta"):
            expected = CharLSTM(settings).state_dict()
        archive.require_tensors(state, expected)
        model = CharLSTM(settings)
        model.load_state_dict(state)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except (DamagedError, DataError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path} was not written by `shoal train`, or is damaged: {reason}; copy it again") from error
    return model.eval()


def _settings(metadata: Mapping[str, str]) -> EncoderSettings:
    values: dict[str, Any] = parse_json_object(metadata.get(_METADATA, "{}"))
    if values.pop("format", None) != FORMAT:
        raise DamagedError(f"its format is not {FORMAT}, the only format that this version of Shoal reads")
    settings = from_json(EncoderSettings, values)
    if len(set(settings.characters)) < len(settings.characters):
        raise DamagedError("its list of characters repeats a character")
    return settings
