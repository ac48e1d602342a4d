"""Models with known weights and vocabulary, and therefore known predictions."""

from pathlib import Path
from typing import Any

import pytest
import torch

from corpus.text import word_ids
from trainer.classification import models
from trainer.classification.losses import Loss, Scale
from trainer.classification.model_folder import write_model
from trainer.classification.trained_model import TrainedModel

WORDS = {"good": 1.0, "bad": -1.0, "fair": 0.002, "dull": -0.002}
"""Vocabulary with a weight for each word. The odds of a text are exp(100 times the mean weight)."""
SETTINGS = {
    "embedding": 1,
    "hidden": 1,
    "layers": 1,
    "pooling": "mean+max+words",
    "dropout": 0.0,
    "embedding_dropout": 0.0,
    "words": 2 + len(WORDS),
    "outputs": 1,
}


def save(folder: Path, scale: tuple[int, int, int] = (1, 5, 4), **about: Any) -> None:
    """Write a model with this scale of ratings (lowest, highest, lowest positive)."""
    classifier = models.build("lstm", SETTINGS)
    state = {name: torch.zeros_like(value) for name, value in classifier.state_dict().items()}
    state["embedding.weight"][2:, 0] = torch.tensor(list(WORDS.values()))
    state["head.0.weight"][0, 2], state["head.0.weight"][1, 2] = 10.0, -10.0
    state["head.1.weight"][0, 0], state["head.1.weight"][0, 1] = 10.0, -10.0
    classifier.load_state_dict(state)
    model = TrainedModel(
        name="lstm",
        settings=SETTINGS,
        classifier=classifier,
        loss=Loss(kind="bce", scale=Scale(*scale), positive_weight=1.0),
        ids=word_ids(list(WORDS)),
        stopwords=frozenset({"the"}),
        row_length=8,
        about=about,
    )
    write_model(folder / "model", model)


TOPICS = ("war", "film", "song")
"""Classes of a model. The name of each is its only word."""


def save_topics(folder: Path) -> None:
    """Write a model that predicts the topic that a text names most often."""
    settings = {"embedding": 3, "ngrams": 1, "buckets": 1, "dropout": 0.0, "words": 5, "outputs": 3}
    classifier = models.build("fasttext", settings)
    vectors = torch.cat([torch.zeros(2, 3), torch.eye(3)])
    classifier.load_state_dict({"vectors": vectors, "last.weight": 9 * torch.eye(3)})
    model = TrainedModel(
        name="fasttext",
        settings=settings,
        classifier=classifier,
        loss=Loss(kind="softmax", scale=Scale(0, 1, 1), positive_weight=1.0, classes=3),
        ids=word_ids(list(TOPICS)),
        stopwords=frozenset({"the"}),
        row_length=None,
        about={},
        classes=TOPICS,
    )
    write_model(folder / "model", model)


def save_both(factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of both models, by the names that commands of the tables have for them."""
    folders = {name: factory.mktemp(name) for name in ("known", "topics")}
    save(folders["known"])
    save_topics(folders["topics"])
    return folders
