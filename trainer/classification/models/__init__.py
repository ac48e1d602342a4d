"""The models that `--model` can name: from settings to a module that classifies rows of word ids.

A model is a module of this package with two functions: `build(settings)`, and `weights(settings)`, which says how many
numbers it has, so that nothing is built for a file that is too small for it. One line in `MODULES` makes it known.
Models are imported when they are built, so that asking for their names (`--help`) does not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from trainer.classification.models.classifier import Classifier

MODULES = {"lstm": "trainer.classification.models.lstm"}


def build(name: str, settings: Mapping[str, Any]) -> Classifier:
    """A new model with random weights drawn from torch's generator. Raises KeyError for an unknown name."""
    return cast("Classifier", import_module(MODULES[name]).build(settings))


def weights(name: str, settings: Mapping[str, Any]) -> int:
    """How many numbers such a model learns. Raises KeyError for an unknown name."""
    return int(import_module(MODULES[name]).weights(settings))
