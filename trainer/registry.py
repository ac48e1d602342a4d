"""The kinds of tasks that there are: `--model` chooses a model, and with it the kind of task that it belongs to.

This is the only module that knows a task and is not in its room. Another kind of task is a room beside
`classification/`, with a class of its own (task.py), a line in `MODELS`, and its options among `TaskOptions`. Classes
are named here and imported when a run needs them, so that showing all options (`--help`) does not import torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.classification import models as classifiers
from trainer.classification.options import ClassifierOptions

_CLASSIFICATION = "trainer.classification.task", "Classification"

MODELS: Mapping[str, tuple[str, str]] = dict.fromkeys(classifiers.MODULES, _CLASSIFICATION)
"""By a model's name the module of its kind of task, and the class there."""


@dataclass(frozen=True, kw_only=True)
class TaskOptions(ClassifierOptions):
    """The options that belong to tasks."""
