"""Untrained models for tests."""

from pathlib import Path

import numpy as np
import torch

from corpus.text import word_ids
from trainer.classification import models
from trainer.classification.losses import Loss, Scale
from trainer.classification.models.ngram_counts import fit_ngrams
from trainer.classification.rows import RaggedRows
from trainer.classification.trained_model import TrainedModel
from trainer.config import configured


def random_model(words=("good", "bad", "song"), *, name="lstm", kind="cross-entropy", classes=(), **options):
    """Return a small random model that reads padded rows, with a loss for ratings of 1 to 5."""
    torch.manual_seed(1)
    loss = Loss(kind=kind, scale=Scale(1, 5, 4), positive_weight=1 if classes else 0.5, classes=len(classes) or 2)
    config = configured(
        {"model": "lstm", "data": Path("d"), "output": Path("o"), "embedding": 4, "hidden": 3, **options}
    )
    settings = config.options.model_settings(words=2 + len(words), outputs=loss.outputs)
    classifier = models.build(name, settings)
    classifier.set_vocabulary(words)
    with torch.no_grad():
        for table in (*classifier.tables, *classifier.sparse_tables):
            table.mul_(30)
    padded = {"stopwords": frozenset({"the"}), "row_length": 4, "words": "letters", "classes": classes}
    return _trained(name, settings, classifier, loss, words, **padded)


def random_fasttext(words=("good", "bad", "!"), *, ngrams=2, classes=(), **options):
    """Return a small random model that reads whole texts, with the tokenisation rule that keeps punctuation."""
    torch.manual_seed(1)
    loss = Loss(kind="softmax", scale=Scale(0, 1, 1), positive_weight=1.0, classes=len(classes) or 2)
    given = {"model": "fasttext", "embedding": 4, "ngrams": ngrams, "buckets": 50, "dropout": 0.0, **options}
    config = configured({"data": Path("d"), "output": Path("o"), **given})
    settings = config.options.model_settings(words=2 + len(words), outputs=loss.outputs)
    classifier = models.build("fasttext", settings)
    classifier.set_vocabulary(words)
    torch.nn.init.normal_(classifier.last.weight, std=8.0)
    return _trained("fasttext", settings, classifier, loss, words, classes=classes)


def random_linear(words: tuple[str, ...], *, classes: tuple[str, ...] = ()) -> TrainedModel:
    """Return a linear model with random weights for the n-grams of the words."""
    torch.manual_seed(1)
    kind = "softmax" if classes else "bce"
    loss = Loss(kind=kind, scale=Scale(0, 1, 1), positive_weight=1.0, classes=len(classes) or 2)
    texts = [tuple(range(2, 2 + len(words))), tuple(range(1 + len(words), 1, -1))] * 2
    tokens, lengths = np.array(texts, np.uint16).ravel(), np.array([len(text) for text in texts])
    labels = np.array([0, 1, 0, 1], np.uint8)
    ends = lengths.cumsum()
    rows = RaggedRows(tokens=tokens, lengths=lengths, labels=labels, ratings=labels, ends=ends, row_length=9)
    found = fit_ngrams(rows, words, ngrams=3)
    places, sizes = {"data": Path("d"), "output": Path("o")}, {"buckets": len(found.keys)}
    config = configured({**places, "model": "linear", **sizes})
    settings = config.options.model_settings(words=2 + len(words), outputs=loss.outputs)
    classifier = models.build("linear", settings)
    constant = torch.full((loss.outputs,), 0.3)
    classifier.set_ngrams(found._replace(ratios=np.maximum(found.ratios, np.float32(0.1))), constant, constant)
    classifier.set_vocabulary(words)
    torch.nn.init.normal_(classifier.sparse_tables[0][1:])
    return _trained("linear", settings, classifier, loss, words, classes=classes)


def _trained(name, settings, classifier, loss, vocabulary, **more) -> TrainedModel:
    """Return a model that reads whole texts, unless `more` says otherwise."""
    about = {"dataset": "d1", "epoch": 3, "test": {"accuracy": 0.9, "majority": 0.7}}
    values = {"stopwords": frozenset(), "row_length": None, "words": "tokens", **more}
    own = {"name": name, "settings": settings, "classifier": classifier.eval(), "loss": loss}
    return TrainedModel(**own, ids=word_ids(vocabulary), about=about, **values)
