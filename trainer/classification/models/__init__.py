"""Classifiers for `--model`: modules that classify rows of word ids, built from settings.

A model is a subclass of Classifier (classifier.py), which its declaration in trainer/registry.py names. Models are
import_class when they are built, so that `--help` does not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainer.registry import MODELS, import_class

if TYPE_CHECKING:
    from trainer.classification.models.classifier import Classifier


def kind(name: str) -> type[Classifier]:
    """Return the class of a model. Raises KeyError for an unknown name."""
    found: type[Classifier] = import_class(MODELS[name].classifier)
    return found


def build(name: str, settings: Mapping[str, Any]) -> Classifier:
    """Return a new model with random weights from torch's generator."""
    return kind(name)(**settings)
