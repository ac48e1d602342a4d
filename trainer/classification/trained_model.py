"""Trained classifier in memory. It is written at the end of training, read from model files, and used for prediction.

New texts must be tokenised exactly like the training texts. So a model contains the vocabulary, the stopwords, the
tokenisation rule and the row length with which it was trained; `corpus` tokenises. Do not trust the content of a model
file. All of the content is checked here, before memory is allocated for the sizes that it states.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from common.checked_values import require_fields
from common.display import is_printable
from corpus.dataset_settings import WORD_RULES, Settings
from corpus.text import FIRST_WORD, word_ids
from corpus.tokens import is_token
from trainer.classification import models
from trainer.classification.losses import Loss
from trainer.classification.metrics import TWO_CLASSES
from trainer.classification.models.classifier import Classifier
from trainer.config import sections_of
from trainer.output import archive
from trainer.output.archive import DamagedError
from trainer.registry import CLASSIFIERS

_FIELDS = {
    "name": str,
    "settings": dict,
    "loss": dict,
    "vocabulary": list,
    "words": str,
    "stopwords": list,
    "row_length": int | None,
    "classes": list,
    "about": dict,
}


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """Trained classifier, with all settings that it needs to read texts."""

    name: str
    """Name of the model, one of `CLASSIFIERS`."""
    settings: Mapping[str, Any]
    """Settings for `models.build`."""
    classifier: Classifier
    loss: Loss
    ids: dict[str, int]
    """Vocabulary: the id of each word, in the order of the ids."""
    stopwords: frozenset[str]
    row_length: int | None
    """Largest number of words that the model reads from a text; None: all words."""
    about: dict[str, Any]
    """Origin of the model: digest of the dataset, epoch (from 1), and measures on the test rows.

    It also contains `rating_steps` and `rating_fraction`, which describe the dataset's rating scale
    (corpus/dataset_settings.py).
    """
    words: str = "letters"
    """Tokenisation rule: one of corpus.dataset_settings.WORD_RULES."""
    classes: tuple[str, ...] = ()
    """Class names in the order of the labels; empty for the two classes negative and positive."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """Class names in the order of the labels; for two classes without names, negative and positive."""
        return self.classes or TWO_CLASSES


def build_unfilled(content: Mapping[str, Any], numbers: int) -> TrainedModel:
    """Return the model that the fields of a model file describe, with weights that are not loaded yet.

    `content`: the fields (_FIELDS). `numbers`: the number of weights in the file. A model with a different number of
    weights is not allocated. Raises DamagedError, DataError, TrainingError, ValueError or TypeError if the content is
    invalid.
    """
    for name, kind in _FIELDS.items():
        if name not in content or not isinstance(content[name], kind):
            raise DamagedError(f"`{name}` is missing, or has the wrong type")
    if content["words"] not in WORD_RULES:
        raise DamagedError(
            f"its tokenisation rule is {content['words']!r}, but this version of Shoal knows only "
            f"{', '.join(WORD_RULES)}; use the version of Shoal that trained the model"
        )
    is_entry = is_token if content["words"] == "tokens" else is_printable
    vocabulary, stopwords = (_words(content[name], is_entry) for name in ("vocabulary", "stopwords"))
    classes = _words(content["classes"], is_printable)
    if content["row_length"] is not None:
        require_fields(Settings, {"row_length": content["row_length"]})
        Settings(row_length=content["row_length"])
    about = content["about"]
    Settings.from_json({name: about[name] for name in ("rating_steps", "rating_fraction") if name in about})
    json.dumps(about, allow_nan=False).encode()
    if not isinstance(about.get("test", {}), dict):
        raise DamagedError("its measures are not a JSON object")
    loss = Loss.of(content["loss"])
    settings = _settings(content["name"], content["settings"])
    if (settings["words"], settings["outputs"]) != (len(vocabulary) + FIRST_WORD, loss.outputs):
        raise DamagedError("its number of words or outputs does not match its settings")
    if (len(classes) or 2) != loss.classes:
        raise DamagedError(f"it has {len(classes)} class names, but its loss has {loss.classes} classes")
    if numbers != models.kind(content["name"]).count_weights(settings):
        raise DamagedError("its number of weights does not match its settings")
    return TrainedModel(
        name=content["name"],
        settings=settings,
        classifier=models.build(content["name"], settings),
        loss=loss,
        ids=word_ids(vocabulary),
        stopwords=frozenset(stopwords),
        row_length=content["row_length"],
        about=about,
        words=content["words"],
        classes=tuple(classes),
    )


def load_weights(
    model: TrainedModel, state: Mapping[str, Tensor], of_vocabulary: Mapping[str, Tensor] | None = None
) -> TrainedModel:
    """Load weights into a model from `build_unfilled`, and return the model, ready for prediction.

    `of_vocabulary`: the model's `vocabulary_tensors`, if they are stored. Raises DamagedError or ValueError if the
    tensors do not fit the model.
    """
    archive.require_tensors(state, model.classifier.state_dict())
    if of_vocabulary is not None and of_vocabulary.keys() != model.classifier.vocabulary_tensors().keys():
        raise DamagedError("its tensors of the vocabulary do not match the model that it describes")
    model.classifier.load_state_dict(state)
    if of_vocabulary:
        model.classifier.restore_vocabulary(list(model.ids), of_vocabulary)
    else:
        model.classifier.set_vocabulary(list(model.ids))
    model.classifier.eval()
    return model


def _settings(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a model's settings after checks. Settings that are also options of a run must obey the options' rules.

    Raises DamagedError or DataError if the settings are invalid.
    """
    if name not in CLASSIFIERS:
        raise DamagedError(f"its model is {name}, but must be one of {', '.join(CLASSIFIERS)}")
    options = {option: value for option, value in settings.items() if option not in ("words", "outputs")}
    kind = sections_of(name)["options"]
    require_fields(kind, options)
    words, outputs = (settings.get(count) for count in ("words", "outputs"))
    if type(words) is not int or type(outputs) is not int:
        raise DamagedError("its number of words or its number of outputs is not an integer")
    if kind(**options).model_settings(words=words, outputs=outputs) != settings:
        raise DamagedError("its settings are invalid")
    return settings


def _words(words: Sequence[Any], is_entry: Callable[[str], bool]) -> Sequence[str]:
    if not all(isinstance(word, str) and word and is_entry(word) for word in words) or len(set(words)) < len(words):
        raise DamagedError("it contains an invalid or a repeated word")
    return words
