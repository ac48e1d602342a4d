"""The registry of models: what the rest of the program asks about each without importing torch.

A new model of texts is a module in `classification/models/` and an entry here. A new kind of learning is a package
beside `classification/`, with a subclass of Task (task.py), and its options among those of `TrainConfig` (config.py).
Modules are named here and imported when a run needs them, so that `--help` does not import torch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

STEPS_AN_EPOCH = 100


class RowsByEpoch(NamedTuple):
    """The default rows of a step: those that make STEPS_AN_EPOCH steps an epoch, within bounds."""

    fewest: int
    most: int
    on_gpus_alone: bool = False
    """On CPUs steps have a fixed number of rows instead."""

    def of(self, rows: int) -> int:
        """The rows of a step of a run on so many training rows."""
        return max(self.fewest, min(self.most, rows // STEPS_AN_EPOCH))


@dataclass(frozen=True, kw_only=True)
class Model:
    """A kind of model, as `--model` chooses it."""

    about: str
    """For the help of `--model`."""
    task: tuple[str, str] = ("trainer.classification.task", "Classification")
    """The module of its task, and the class in it."""
    module: str = ""
    """Of a model of texts: the module that builds it."""
    settings: tuple[str, ...] = ()
    """Of a model of texts: the options that it is built from."""
    learns: str = "classes"
    """What it learns: `classes` of texts; or embeddings of `words`, from a stream of text."""
    reads_whole_texts: bool = False
    rows_follow_texts: bool = False
    """By SGD it takes few rows a step, fewer of longer texts (`sgd_batch`)."""
    chooses_ngrams: bool = False
    """It has weights of the n-grams of its training rows, and of no others."""
    rows_by_epoch: RowsByEpoch | None = None
    """The default rows of a step, where they follow from the rows of an epoch."""
    rows_of_a_step: tuple[int, int] = (0, 0)
    """Of a model of words, on a CPU and on a GPU. Where steps are short, calls take most of their time.
    256 rows of skip-gram learn much less, 64 a little (docs/training.md)."""
    has_modes: bool = False
    """Ranks can learn apart, too (`--mode`)."""
    has_known_rates: bool = False
    """The catalogue of instance types has the rates of GPUs in it."""


_OF_THE_LSTM = ("embedding", "vocabulary", "hidden", "layers", "pooling", "dropout", "embedding_dropout")

AUTO = "auto"
"""What stands for the model that a search finds."""

MODELS: Mapping[str, Model] = {
    AUTO: Model(about="the one that does best on training rows held out, with its settings, found in --minutes"),
    "linear": Model(
        about="logistic regression on the n-grams of a text's words and characters",
        module="trainer.classification.models.linear",
        settings=("ngrams", "char_ngrams", "buckets"),
        reads_whole_texts=True,
        chooses_ngrams=True,
        rows_by_epoch=RowsByEpoch(8, 4096),
    ),
    "lstm": Model(
        about="an LSTM",
        module="trainer.classification.models.lstm",
        settings=_OF_THE_LSTM,
        rows_by_epoch=RowsByEpoch(256, 16_384, on_gpus_alone=True),
        has_known_rates=True,
    ),
    "fasttext": Model(
        about="the mean of the embeddings of a text's words and n-grams",
        module="trainer.classification.models.fasttext",
        settings=("embedding", "ngrams", "char_ngrams", "buckets", "dropout"),
        reads_whole_texts=True,
        rows_follow_texts=True,
    ),
    "skipgram": Model(
        about="skip-gram with negative sampling, an embedding of each word",
        task=("trainer.embeddings.skipgram_task", "SkipGramEmbedding"),
        learns="words",
        rows_of_a_step=(16, 64),
        has_modes=True,
    ),
    "char-lstm": Model(
        about="an LSTM that reads the characters of a word",
        task=("trainer.embeddings.char_task", "CharacterEmbedding"),
        learns="words",
        rows_of_a_step=(8, 8),
    ),
}


COMMANDS: Mapping[str, str] = {"classes": "train", "words": "embed"}
"""The command of each kind of learning."""


def models_that(holds: Callable[[Model], object]) -> tuple[str, ...]:
    """The names of the models of which something holds."""
    return tuple(name for name, model in MODELS.items() if holds(model))


CLASSIFIERS = models_that(lambda model: model.module)
WORD_MODELS = models_that(lambda model: model.learns == "words")
