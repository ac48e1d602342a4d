"""The registry of tasks: `--model` chooses a model, and with it the task that the model belongs to.

This is the only module outside a task's package that knows a task. A new kind of task is a package beside
`classification/`, with a subclass of Task (task.py), a line in `MODELS`, and its options among `TaskOptions`. Classes
are named here and imported when a run needs them, so that `--help` does not import torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.classification import models as classifiers
from trainer.classification.options import ClassifierOptions
from trainer.embeddings.options import EmbeddingOptions

_CLASSIFICATION = "trainer.classification.task", "Classification"

MODELS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(classifiers.MODULES, _CLASSIFICATION),
    "skipgram": ("trainer.embeddings.task", "Embedding"),
    "char-lstm": ("trainer.embeddings.char_task", "CharacterEmbedding"),
}
"""For each model the module of its task, and the class in it."""

WORD_MODELS = ("skipgram", "char-lstm")
"""Models of words, which learn from a stream of text and not from a dataset."""


@dataclass(frozen=True, kw_only=True)
class TaskOptions(ClassifierOptions, EmbeddingOptions):
    """The options of all tasks."""
