"""The kinds of tasks that there are, by the models that they have: `--model` chooses both.

This is the only module that knows a task and is not in its room. Another kind of task is a room beside
`classification/`, with a class of its own (task.py), and a line here. The class is imported when a run needs it, so
that asking for the names of models (`--help`) does not import torch.
"""

from importlib import import_module
from typing import Any

from trainer.classification import models as classifiers
from trainer.task import Task

_CLASSIFICATION = "trainer.classification.task", "Classification"

MODELS = dict.fromkeys(classifiers.MODULES, _CLASSIFICATION)
"""By a model's name the module of its kind of task, and the class there."""


def kind_of(model: str) -> type[Task[Any]]:
    """The kind of task that a model belongs to. Raises KeyError for an unknown model."""
    module, name = MODELS[model]
    found: type[Task[Any]] = getattr(import_module(module), name)
    return found
