"""Classifiers for `--model`: modules that classify rows of word ids, and are built from settings.

A model is a subclass of Classifier (classifier.py). The model's declaration in trainer/registry.py names this class.
The class is imported only when a model is built, so that `--help` does not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from trainer.registry import MODELS

if TYPE_CHECKING:
    from trainer.classification.models.classifier import Classifier


def kind(name: str) -> type[Classifier]:
    """Return the class of the model with this name. Raises KeyError if the name is unknown."""
    classifier: type[Classifier] = resolve_name(MODELS[name].classifier)
    return classifier


def build(name: str, settings: Mapping[str, Any]) -> Classifier:
    """Return a new model with random weights, drawn from torch's default generator."""
    return kind(name)(**settings)
