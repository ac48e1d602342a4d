"""Settings under one name: presets, and the defaults that a model has instead of the options' own.

Options that are given take precedence over a preset, and a preset over the defaults of its model.
"""

from collections.abc import Mapping
from typing import Any

MODEL_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "linear": {
        "optimiser": "adagrad",
        "learning_rate": 0.3,
        "word_rate": 1.0,
        "rate_scaling": "none",
        "schedule": "linear",
        "warm_up": 0.0,
        "clip_norm": 0.0,
        "epochs": 3,
        "ngrams": 3,
        "char_ngrams": "2-5",
        "loss": "bce",
        "word_dropout": 0.0,
    },
    "lstm": {"vocabulary": 30_000},
    "fasttext": {
        "optimiser": "adagrad",
        "learning_rate": 0.3,
        "word_rate": 1.0,
        "schedule": "linear",
        "clip_norm": 0.0,
        "embedding": 10,
        "dropout": 0.5,
        "word_dropout": 0.0,
    },
    "skipgram": {
        "optimiser": "sgd",
        "learning_rate": 10.0,
        "word_rate": 1.0,
        "rate_scaling": "linear",
        "momentum": 0.0,
        "schedule": "linear",
        "warm_up": 0.0,
        "clip_norm": 100.0,
        "embedding": 100,
    },
    "char-lstm": {
        "optimiser": "adam",
        "learning_rate": 5e-2,
        "schedule": "linear",
        "embedding": 100,
        "hidden": 128,
    },
}
"""Defaults by model, where they are not those of the options. docs/training.md has the measurements."""

SEARCHED = (
    "positive_weight",
    "optimiser",
    "learning_rate",
    "word_rate",
    "rate_scaling",
    "schedule",
    "warm_up",
    "clip_norm",
    "epochs",
    "embedding",
    "vocabulary",
    "ngrams",
    "dropout",
    "word_dropout",
    "loss",
)
"""Options that `--model auto` chooses unless they are given."""

SEARCH_MINUTES = 5.0
"""What its search takes at most, by default. docs/training.md has the measurements."""

ON_ENDLESS_TEXT: Mapping[str, Mapping[str, Any]] = {
    "skipgram": {"optimiser": "adagrad", "learning_rate": 0.2, "rate_scaling": "none"},
    "char-lstm": {"warm_up": 0.0},
}
"""Defaults by model of a run on an unbounded stream. SGD needs a rate that falls, and so the end of the text;
Adagrad's falls for each word by how often it has occurred."""

WITHOUT_END: Mapping[str, Any] = {"schedule": "constant"}
"""Defaults of a run on such text that has no `--words` or `--epochs` either: its rate has nothing to fall by."""

WITH_EMBEDDINGS: Mapping[str, Mapping[str, Any]] = {"lstm": {"word_rate": 0.02}}
"""Defaults by model of a run with --embeddings. The LSTM soon forgets what its vectors knew if they move as fast as
random ones must; in fastText's model the vectors of n-grams have the same rate, and are random."""

_OF_PAIRS: Mapping[str, Any] = {
    "window": 5,
    "negatives": 10,
    "subsample": 2e-3,
    "min_count": 3,
    "optimiser": "adam",
    "learning_rate": 1e-4,
    "word_rate": 1.0,
    "rate_scaling": "none",
    "schedule": "constant",
    "warm_up": 0.0,
    "clip_norm": 0.0,
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "reference": {
        "model": "lstm",
        "rank_batch": 128,
        "epochs": 10,
        "optimiser": "sgd",
        "learning_rate": 0.1,
        "word_rate": 1.0,
        "rate_scaling": "none",
        "momentum": 0.9,
        "schedule": "constant",
        "warm_up": 0.0,
        "clip_norm": 0.0,
        "embedding": 100,
        "vocabulary": 2_000_000,
        "row_length": 100,
        "hidden": 32,
        "layers": 2,
        "pooling": "last",
        "dropout": 0.5,
        "embedding_dropout": 0.0,
        "word_dropout": 0.0,
        "loss": "bce",
        "positive_weight": 0.2,
    },
    "fasttext": {
        "model": "fasttext",
        "epochs": 5,
        "optimiser": "sgd",
        "learning_rate": 51.2,
        "word_rate": 0.5,
        "rate_scaling": "linear",
        "momentum": 0.0,
        "warm_up": 0.0,
        "buckets": 2_000_000,
        "dropout": 0.0,
        "loss": "bce",
        "positive_weight": 1.0,
    },
    "gluon": {
        "model": "fasttext",
        "global_batch": 16,
        "epochs": 25,
        "optimiser": "adam",
        "learning_rate": 0.05,
        "rate_scaling": "none",
        "schedule": "constant",
        "warm_up": 0.0,
        "embedding": 100,
        "ngrams": 1,
        "dropout": 0.1,
        "loss": "bce",
        "positive_weight": 1.0,
    },
    "sgns": {"model": "skipgram", **_OF_PAIRS},
    "sgns-char": {
        "model": "char-lstm",
        **_OF_PAIRS,
        "embedding": 200,
        "character_embedding": 128,
        "hidden": 512,
        "layers": 1,
    },
}
"""`reference` is the reference system for reviews. `fasttext` is the fastText program: its rate of 0.1 for each row is
51.2 for 256 rows, because one output for two classes takes steps twice as large as two, and its word embeddings half of
these. `gluon` is what a student's project took for 560,000 Yelp reviews. `sgns`
and `sgns-char` are those of a students' system that was to learn word embeddings from a stream."""

ENDLESS = 1_000_000
"""The epochs of a run on an unbounded stream: it ends when it is stopped, and not after so many."""

GLOBAL_BATCH = 256
"""Rows of a step, where neither the user nor the model says another number."""

OF_THE_RUN = ("global_batch", "rank_batch", "epochs")
"""Settings that a resumed run keeps unless they are given. A preset does not change them."""

SYSTEMS: Mapping[str, str] = {
    "reference": "the reference system (2 x 32 LSTM, SGD)",
    "fasttext": "the fastText program (SGD, bigrams)",
    "gluon": "Gluon's fastText (Adam, single words)",
    "sgns": "a system that learnt skip-gram embeddings from a stream",
    "sgns-char": "that system's character-level model",
}
"""The system of each preset."""
