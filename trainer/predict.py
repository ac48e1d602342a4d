"""A trained model as a file, and what it says about new texts.

The easy mistake is to clean new texts otherwise than the training texts were: the file carries the vocabulary, the
stopwords and the row length that the model was trained with, and the cleaning is corpus.text's own.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from corpus.text import PADDING, encode, word_ids, words
from trainer import models
from trainer.data import Rows
from trainer.errors import TrainingError
from trainer.files import MODEL, write_whole
from trainer.losses import Loss
from trainer.models.classifier import Classifier

FILE_NAME = MODEL
FORMAT = 3

_BATCH = 512


class Prediction(NamedTuple):
    """What a model says about a text: label 1 (positive) or 0, and the probability of label 1.

    A text that keeps no word (only stopwords, or no words at all) says nothing: its label is None, and its
    probability one half. Training never saw such texts either.
    """

    label: int | None
    probability: float


@dataclass(frozen=True, kw_only=True)
class Model:
    """A trained classifier with what it needs to read texts."""

    classifier: Classifier
    loss: Loss
    ids: dict[str, int]
    stopwords: frozenset[str]
    row_length: int
    about: dict[str, Any]
    """Where it comes from: the dataset's digest, the epoch (from 1), its measures on the test set."""


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


def load_model(path: Path | str) -> Model:
    """Read a model file, or the one in a run's output folder.

    Raises TrainingError when there is none, or when it is not one that this Shoal can read.
    """
    path = Path(path)
    if path.is_dir():
        path /= FILE_NAME
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise TrainingError(f"{path}: no such file; `shoal train` writes one when it has finished") from None
    except Exception as error:
        # torch raises whatever it stumbles over in a file of another kind: pickle, zip, type and key errors.
        raise TrainingError(f"{path} is not a model written by `shoal train`, or a damaged one") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise TrainingError(f"{path} is not a model of format {FORMAT}, which this Shoal reads; train it again")
    classifier = models.build(content["name"], content["settings"])
    classifier.load_state_dict(content["state"])
    classifier.eval()
    return Model(
        classifier=classifier,
        loss=Loss.of(content["loss"]),
        ids=word_ids(content["vocabulary"]),
        stopwords=frozenset(content["stopwords"]),
        row_length=content["row_length"],
        about=content["about"],
    )


def predict(model: Model, texts: Sequence[str]) -> list[Prediction]:
    """What the model says about each text, in their order; words outside its vocabulary count as unknown."""
    encoded = [encode(words(text), model.ids, model.stopwords, model.row_length) for text in texts]
    lengths = np.array([len(row) for row in encoded], dtype=np.uint16)  # (texts,)
    tokens = np.full((len(texts), model.row_length), PADDING, dtype=np.uint32)
    for row, ids in zip(tokens, encoded, strict=True):
        row[: len(ids)] = ids
    no_labels = np.zeros(len(texts), dtype=np.uint8)
    rows = Rows(tokens=tokens, lengths=lengths, labels=no_labels, ratings=no_labels)
    probabilities = np.full(len(texts), 0.5)
    numbers = np.argsort(-lengths.astype(np.int64), kind="stable")[: int((lengths > 0).sum())]
    with torch.inference_mode():
        for start in range(0, len(numbers), _BATCH):
            some = numbers[start : start + _BATCH]
            batch = rows.batch(some, torch.device("cpu"))
            outputs = model.classifier(batch.tokens, batch.lengths)
            probabilities[some] = torch.sigmoid(model.loss.log_odds(outputs)).double().numpy()
    return [
        Prediction(int(probability > 0.5) if length else None, float(probability))
        for length, probability in zip(lengths, probabilities, strict=True)
    ]
