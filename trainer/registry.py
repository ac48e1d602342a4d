"""Registry of models. Options, help, defaults, checks, plans and reports are derived from it.

To add a text classifier, add a module to `classification/models/`, a module of its options next to it, a declaration to
this file, and a test. To add a kind of learning, add a package next to `classification/` with a subclass of Task
(task.py) and with its options. Classes are declared by their import path, and imported when a run needs them. Modules
of options do not import torch, so `--help` does not either.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Settings = Mapping[str, Any]
"""Option values, keyed by option name."""

STEPS_AN_EPOCH = 100


class Workload(NamedTuple):
    """Properties of a run that determine the default batch size."""

    on_gpus: bool
    optimiser: str = ""
    rows: int = 0
    """Number of training rows."""
    words: float = 0.0
    """Mean number of words of a training row."""

    def hundredth(self, fewest: int, most: int) -> int:
        """Return the batch size with STEPS_AN_EPOCH steps per epoch, limited to [fewest, most]."""
        return max(fewest, min(most, self.rows // STEPS_AN_EPOCH))


class StepRows(NamedTuple):
    """Default batch size of a model: a rule, and a description of this rule."""

    about: str
    """Description for the help of `--global-batch`."""
    of: Callable[[Workload], int | None]
    """Function that returns the number of rows per step for a run; None for the general default."""


class Preset(NamedTuple):
    """Settings, with a name, that reproduce a different system."""

    system: str
    """Description for the help of `--preset`."""
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Model:
    """Declaration of a model, which is a choice of `--model`."""

    about: str
    """Description for the help of `--model`."""
    task: str = "trainer.classification.task:Classification"
    """Import path of the task class."""
    classifier: str = ""
    """Import path of the Classifier class of a text classifier."""
    options: str = "trainer.classification.options:ClassifierOptions"
    """Import path of the Section with the options of this model."""
    optimisation: str = "trainer.options.optimisation_options:OptimisationOptions"
    """Import path of the Section with the options of this model's optimisation."""
    optimisers: tuple[str, ...] = ()
    """Supported optimisers; if empty, all optimisers are supported."""
    learns: str = "classes"
    """Kind of learning: `classes` (text classification) or `words` (word embeddings from a text stream)."""
    defaults: Settings = field(default_factory=dict)
    """Defaults of this model that differ from those of the declared options.

    benchmarks/results/ has the measurements.
    """
    with_embeddings: Settings = field(default_factory=dict)
    """Defaults of this model in a run with `--embeddings`."""
    on_endless_text: Settings = field(default_factory=dict)
    """Defaults of this model in a run on an unbounded stream."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    step_rows: StepRows | None = None


_CONSTANT_RATE: Settings = {"rate_scaling": "none", "schedule": "constant", "warm_up": 0.0}
_ADAGRAD: Settings = {
    "optimiser": "adagrad",
    "learning_rate": 0.3,
    "word_rate": 1.0,
    "schedule": "linear",
    "clip_norm": 0.0,
}
_REFERENCE = Preset(
    "the reference system (2 x 32 LSTM, SGD)",
    {
        "rank_batch": 128,
        "epochs": 10,
        "optimiser": "sgd",
        "learning_rate": 0.1,
        "word_rate": 1.0,
        **_CONSTANT_RATE,
        "momentum": 0.9,
        "clip_norm": 0.0,
        "embedding": 100,
        "vocabulary": 2_000_000,
        "hidden": 32,
        "layers": 2,
        "pooling": "last",
        "dropout": 0.5,
        "embedding_dropout": 0.0,
        "word_dropout": 0.0,
        "row_length": 100,
        "loss": "bce",
        "positive_weight": 0.2,
    },
)
_FASTTEXT = Preset(
    "the fastText program (SGD, bigrams)",
    {
        "epochs": 5,
        "optimiser": "sgd",
        # fastText's rate is 0.1 per row of 256 rows, for two outputs. A model with one output needs twice this rate.
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
)
_GLUON = Preset(  # settings of a student project for 560,000 Yelp reviews
    "Gluon's fastText (Adam, single words)",
    {
        "global_batch": 16,
        "epochs": 25,
        "optimiser": "adam",
        "learning_rate": 0.05,
        **_CONSTANT_RATE,
        "momentum": 0.0,
        "embedding": 100,
        "ngrams": 1,
        "dropout": 0.1,
        "loss": "bce",
        "positive_weight": 1.0,
    },
)
_SKIPGRAM_SYSTEM: Settings = {
    "window": 5,
    "negatives": 10,
    "subsample": 2e-3,
    "min_count": 3,
    "optimiser": "adam",
    "learning_rate": 1e-4,
    "word_rate": 1.0,
    **_CONSTANT_RATE,
    "clip_norm": 0.0,
}
"""Settings of a student project's system for word embeddings from a stream."""

_CLASSIFIERS = {
    "linear": Model(
        about="logistic regression on the n-grams of a text's words and characters",
        classifier="trainer.classification.models.linear:Linear",
        options="trainer.classification.models.linear_options:LinearOptions",
        optimisers=("adagrad",),
        defaults={**_ADAGRAD, "rate_scaling": "none", "warm_up": 0.0, "epochs": 3, "loss": "bce"},
        step_rows=StepRows("a hundredth of the training rows, 8 to 4,096", lambda run: run.hundredth(8, 4096)),
    ),
    "lstm": Model(
        about="an LSTM",
        classifier="trainer.classification.models.lstm:LSTMClassifier",
        options="trainer.classification.models.lstm_options:LSTMOptions",
        defaults={"vocabulary": 30_000},
        # At the high rate that random vectors need, the LSTM soon forgets pretrained vectors. In fastText's model the
        # n-gram vectors are random, and have the same rate as the word vectors.
        with_embeddings={"word_rate": 0.02},
        presets={"reference": _REFERENCE},
        step_rows=StepRows(
            "on GPUs a hundredth of the training rows, 256 to 16,384",
            lambda run: run.hundredth(256, 16_384) if run.on_gpus else None,
        ),
    ),
    "fasttext": Model(
        about="the mean of the embeddings of a text's words and n-grams",
        classifier="trainer.classification.models.fasttext:FastText",
        options="trainer.classification.models.fasttext_options:FastTextOptions",
        defaults=_ADAGRAD,
        presets={"fasttext": _FASTTEXT, "gluon": _GLUON},
        # With SGD, larger steps learn less per epoch. On texts with fewer than 20 words, 192 rows per step learn as
        # much, and for 64 rows the overhead would exceed the compute time (`python -m benchmarks fasttext quality`).
        step_rows=StepRows(
            "with SGD 64, or 192 for short texts",
            lambda run: (192 if run.words < 20 else 64) if run.optimiser == "sgd" else None,
        ),
    ),
}
_WORD_MODELS = {
    "skipgram": Model(
        about="skip-gram with negative sampling, an embedding of each word",
        task="trainer.embeddings.task:SkipGramEmbedding",
        options="trainer.embeddings.options:EmbeddingOptions",
        optimisation="trainer.embeddings.options:SkipGramOptimisation",
        learns="words",
        defaults={
            "optimiser": "sgd",
            "learning_rate": 10.0,
            "word_rate": 1.0,
            "rate_scaling": "linear",
            "momentum": 0.0,
            "schedule": "linear",
            "warm_up": 0.0,
            "clip_norm": 100.0,
        },
        # SGD needs a decaying rate, and therefore a known number of steps. Adagrad's rate for a word decays by itself.
        on_endless_text={"optimiser": "adagrad", "learning_rate": 0.2, "rate_scaling": "none"},
        presets={"sgns": Preset("a system that learned skip-gram embeddings from a stream", _SKIPGRAM_SYSTEM)},
        # The overhead of calls dominates short steps. A step of 256 rows learns much less, a step of 64 slightly less.
        step_rows=StepRows("16, on GPUs 64", lambda run: 64 if run.on_gpus else 16),
    ),
    "char-lstm": Model(
        about="an LSTM that reads the characters of a word",
        task="trainer.embeddings.task:CharacterEmbedding",
        options="trainer.embeddings.options:CharLSTMOptions",
        learns="words",
        defaults={"optimiser": "adam", "learning_rate": 5e-2, "schedule": "linear"},
        on_endless_text={"warm_up": 0.0},
        presets={
            "sgns-char": Preset(
                "that system's character-level model",
                {**_SKIPGRAM_SYSTEM, "embedding": 200, "character_embedding": 128, "hidden": 512, "layers": 1},
            )
        },
        step_rows=StepRows("8", lambda _: 8),
    ),
}

MODELS: Mapping[str, Model] = {**_CLASSIFIERS, **_WORD_MODELS}
CLASSIFIERS, WORD_MODELS = tuple(_CLASSIFIERS), tuple(_WORD_MODELS)
DEFAULT_MODEL = CLASSIFIERS[0]
"""Model of a run for which the user names none: the most accurate one (benchmarks/results/fasttext.md)."""

PRESETS: Mapping[str, Settings] = {
    name: {"model": of, **preset.settings} for of, model in MODELS.items() for name, preset in model.presets.items()
}
COMMANDS: Mapping[str, str] = {"classes": "train", "words": "embed"}
"""Name of the command for each kind of learning."""
