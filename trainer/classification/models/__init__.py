"""The models that `--model` can name: modules that classify rows of word ids, built from settings.

A model is a module of this package with two functions: `build(settings)`, and `weights(settings)`, which returns how
many numbers it has, so that nothing is built for a file that is too small. An entry in trainer/registry.py names it.
Models are imported when they are built, so that `--help` does not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from trainer.registry import MODELS

if TYPE_CHECKING:
    from trainer.classification.models.classifier import Classifier


def build(name: str, settings: Mapping[str, Any]) -> Classifier:
    """A new model with random weights drawn from torch's generator. Raises KeyError for an unknown name."""
    return cast("Classifier", import_module(MODELS[name].module).build(settings))


def weights(name: str, settings: Mapping[str, Any]) -> int:
    """The number of weights of such a model. Raises KeyError for an unknown name."""
    return int(import_module(MODELS[name].module).weights(settings))
