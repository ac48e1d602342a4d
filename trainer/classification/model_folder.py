"""A trained model as a folder: training and `shoal export` write it, and `shoal predict` reads it.

- `model.safetensors`: the weights
- `config.json`: what the model is and what it was trained on (`_config`), with the size and digest of each other file
- `vocabulary.txt`: a word a line, in the order of the ids, which begin with 2
- `measures.json`: the `epoch`, from 1, and the measures on the `test` rows
- `README.md`: the model card; nothing reads it
- `model.onnx`: only where an export was asked for it, for other programs

`config.json` is written last, also to S3. A folder without it is one that was not written to its end. Do not look at a
file before its digest is right: after a copy that was cut short, files of two trainings may lie side by side.
"""

import shlex
import shutil
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from common.errors import DataError, TrainingError
from common.files import indented_json
from common.json_values import parse_json_object
from common.version import VERSION
from trainer.classification.model_card import model_card
from trainer.classification.trained_model import TrainedModel, fill, unfilled
from trainer.output.archive import DamagedError
from trainer.output.run_files import (
    CARD,
    CONFIG,
    MEASURES,
    ONNX,
    VOCABULARY,
    WEIGHTS,
    whole_folder,
)
from trainer.output.stored_files import check_config, require_stored, stored, with_digest
from trainer.registry import WORD_MODELS

FORMAT = 5
READ = (WEIGHTS, VOCABULARY, MEASURES)
"""The files of every model that are read besides `config.json`."""
_MOST_CONFIG_BYTES = 16 << 20
_ORIGIN = ("dataset", "rating_steps", "rating_fraction")
"""What `config.json` has of a model's `about`; `measures.json` has the rest."""


def write_model(folder: Path, model: TrainedModel, *, onnx: bool = False) -> None:
    """Write a model to a folder, in place of an old model's folder; with `onnx` also as an ONNX file.

    The folder appears whole or not at all. Raises TrainingError if it cannot be written, or holds something else.
    """
    try:
        with whole_folder(folder) as new:
            state = {name: tensor.cpu().contiguous() for name, tensor in model.classifier.state_dict().items()}
            save_file(state, new / WEIGHTS, metadata={"format": "pt"})
            (new / VOCABULARY).write_text("".join(f"{word}\n" for word in model.ids), "utf-8")
            shutil.copymode(new / VOCABULARY, new / WEIGHTS)  # safetensors writes for its user alone
            measures = {name: value for name, value in model.about.items() if name not in _ORIGIN}
            (new / MEASURES).write_bytes(indented_json(measures))
            if onnx:
                from trainer.classification.onnx_file import write_onnx

                write_onnx(new / ONNX, model)
            files = {path.name: stored(path) for path in sorted(new.iterdir())}
            config = _config(model, files)
            (new / CARD).write_text(model_card(model, config), "utf-8")
            (new / CONFIG).write_bytes(indented_json(config))
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TrainingError(
            f"cannot write {folder}: {reason}; free some space, then run it again (a training with --resume)"
        ) from error


def read_config(path: Path, shown: str) -> dict[str, Any]:
    """The content of `config.json`; `shown` is the folder's address for messages.

    Its digest, its format and `files` are checked. Raises TrainingError.
    """
    try:
        if path.stat().st_size > _MOST_CONFIG_BYTES:
            raise DamagedError(f"it has more than {_MOST_CONFIG_BYTES >> 20} MiB")
        config = parse_json_object(path.read_bytes())
        if config.get("model") in WORD_MODELS:
            raise TrainingError(
                f"{shown} is a model of words (--model {config['model']}), and labels no texts; `shoal neighbours` and "
                f"`shoal evaluate` take it, and `shoal train --embeddings {shlex.quote(shown)}` starts a classifier "
                "from its vectors"
            )
        if config.get("format") == FORMAT:
            check_config(config, READ)
            return config
    except OSError as error:
        raise TrainingError(f"cannot read {shown}/{CONFIG}: {error.strerror}") from error
    except (DamagedError, DataError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(
            f"{shown}/{CONFIG} was not written by Shoal, or was changed since: {reason}; copy or export the model again"
        ) from error
    raise TrainingError(
        f"{shown}/{CONFIG} is of format {config.get('format')!r}, and this Shoal reads {FORMAT}; take the version "
        "of Shoal that wrote it, or train again"
    )


def read_model_folder(folder: Path, shown: str) -> TrainedModel:
    """The model in a folder; `shown` is its address for messages.

    Raises TrainingError if it cannot be read, is not whole, or is not of this version of Shoal.
    """
    config = read_config(folder / CONFIG, shown)
    for name in READ:
        require_stored(folder / name, f"{shown}/{name}", config)
    try:
        content = {
            **config,
            "name": config.get("model"),
            "vocabulary": (folder / VOCABULARY).read_text("utf-8").split("\n")[:-1],
            "about": {**config.get("data", {}), **parse_json_object((folder / MEASURES).read_bytes())},
        }
        with safe_open(folder / WEIGHTS, framework="pt") as stored:
            names = stored.keys()
            numbers = sum(prod(stored.get_slice(name).get_shape()) for name in names)
            model = unfilled(content, numbers)
            return fill(model, {name: stored.get_tensor(name) for name in names})
    except OSError as error:
        raise TrainingError(f"cannot read {shown}: {error.strerror or error}") from error
    except MemoryError:
        raise TrainingError(f"{shown} does not fit into this machine's memory") from None
    except (DamagedError, DataError, SafetensorError, TrainingError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(f"{shown} is not a model written by `shoal train`, or a damaged one: {reason}") from error


def _config(model: TrainedModel, files: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    config = {
        "format": FORMAT,
        "shoal": VERSION,
        "model": model.name,
        "settings": dict(model.settings),
        "loss": model.loss.plain(),
        "classes": list(model.classes),
        "words": model.words,
        "stopwords": sorted(model.stopwords),
        "row_length": model.row_length,
        "data": {name: model.about[name] for name in _ORIGIN if name in model.about},
        "files": dict(files),
    }
    return with_digest(config)
