"""A trained model as a file: training writes it, and prediction (labelling.py) reads it.

New texts must be cleaned exactly as the training texts were. So the file contains the vocabulary, the stopwords and the
row length of the training, and the cleaning is that of corpus.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from corpus.errors import DataError
from corpus.json_values import require_fields
from corpus.settings import Settings
from corpus.text import FIRST_WORD, word_ids
from trainer.classification import models
from trainer.classification.losses import Loss
from trainer.classification.models.classifier import Classifier
from trainer.classification.options import ClassifierOptions
from trainer.errors import TrainingError
from trainer.output import archive
from trainer.output.archive import DamagedError
from trainer.output.files import MODEL, write_whole

FORMAT = 4

_FIELDS = {
    "name": str,
    "settings": dict,
    "loss": dict,
    "state": dict,
    "vocabulary": list,
    "stopwords": list,
    "row_length": int,
    "about": dict,
}


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A trained classifier, with all that it needs to read texts."""

    classifier: Classifier
    loss: Loss
    ids: dict[str, int]
    stopwords: frozenset[str]
    row_length: int
    about: dict[str, Any]
    """Its origin: the dataset's digest, the epoch (from 1), its measures on the test set. And how ratings were written
    there: `rating_steps`, the steps of the scale per star, and `rating_fraction`, as in the dataset's settings; older
    files have neither."""


def save_model(
    path: Path,
    *,
    name: str,
    settings: dict[str, Any],
    loss: dict[str, Any],
    state: dict[str, torch.Tensor],
    vocabulary: Sequence[str],
    stopwords: frozenset[str],
    row_length: int,
    about: dict[str, Any],
) -> None:
    """Write a model file: a dictionary that `torch.load(path, weights_only=True)` reads."""
    buffer = io.BytesIO()
    torch.save(
        {
            "format": FORMAT,
            "name": name,
            "settings": settings,
            "loss": loss,
            "state": state,
            "vocabulary": list(vocabulary),
            "stopwords": sorted(stopwords),
            "row_length": row_length,
            "about": about,
        },
        buffer,
    )
    write_whole(path, buffer.getvalue())


def load_model(path: Path | str) -> TrainedModel:
    """Read a model file, or the one in a run's output folder.

    Raises TrainingError if there is none, or if this version of Shoal cannot read it.
    """
    path = Path(path)
    if path.is_dir():
        path /= MODEL
    try:
        with path.open("rb") as file:
            content = archive.read(file)
        if content.get("format") == FORMAT:
            return _model(content)
    except FileNotFoundError:
        raise TrainingError(f"{path}: no such file; `shoal train` writes one when it has finished") from None
    except OSError as error:
        raise TrainingError(f"cannot read {path}: {error.strerror}") from error
    except MemoryError:
        raise TrainingError(f"{path} does not fit into this machine's memory") from None
    except (DamagedError, DataError, TrainingError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(f"{path} is not a model written by `shoal train`, or a damaged one: {reason}") from error
    raise TrainingError(f"{path} is not a model of format {FORMAT}, which this Shoal reads; train it again")


def _model(content: dict[str, Any]) -> TrainedModel:
    """The model of a file, after all of its content is checked: nothing is built that is larger than the file's
    bytes."""
    for name, kind in _FIELDS.items():
        if not isinstance(content.get(name), kind):
            raise DamagedError(f"it has no {name}, or one of another type")
    vocabulary, stopwords = (_words(content[name]) for name in ("vocabulary", "stopwords"))
    require_fields(Settings, {"row_length": content["row_length"]})
    _check_ratings(content["about"])
    loss = Loss.of(content["loss"])
    settings = _settings(content["name"], content["settings"])
    if (settings["words"], settings["outputs"]) != (len(vocabulary) + FIRST_WORD, loss.outputs):
        raise DamagedError("the number of its words or its outputs is not that of its settings")
    if archive.stored_numbers(content["state"]) != models.weights(content["name"], settings):
        raise DamagedError("the number of its weights is not that of its settings")
    classifier = models.build(content["name"], settings)
    archive.require_tensors(content["state"], classifier.state_dict())
    classifier.load_state_dict(content["state"])
    classifier.read_vocabulary(vocabulary)
    classifier.eval()
    return TrainedModel(
        classifier=classifier,
        loss=loss,
        ids=word_ids(vocabulary),
        stopwords=frozenset(stopwords),
        row_length=Settings(row_length=content["row_length"]).row_length,
        about=content["about"],
    )


def _settings(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """A model's settings. Those that are options of a run must satisfy the options' rules."""
    if name not in models.MODULES:
        raise DamagedError(f"its model is {name}, but must be one of {', '.join(models.MODULES)}")
    given = {option: value for option, value in settings.items() if option not in ("words", "outputs")}
    require_fields(ClassifierOptions, given)
    words, outputs = (settings.get(count) for count in ("words", "outputs"))
    if type(words) is not int or type(outputs) is not int:
        raise DamagedError("its words or its outputs are not numbers")
    if ClassifierOptions(**given).model_settings(name, words=words, outputs=outputs) != settings:
        raise DamagedError("its settings are not those of a model")
    return settings


def _check_ratings(about: dict[str, Any]) -> None:
    """Raise an error unless `about` describes ratings as a dataset's settings do."""
    Settings.from_json({name: about[name] for name in ("rating_steps", "rating_fraction") if name in about})


def _words(found: list[Any]) -> list[str]:
    if not all(isinstance(word, str) and word and word.isprintable() for word in found) or len(set(found)) < len(found):
        raise DamagedError("it has an entry that is not a word, or a word twice")
    return found
