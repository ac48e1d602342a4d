"""Shoal's public Python API. Names in this package are stable within a minor version; all other names may change.

| name | purpose |
|---|---|
| `preprocess` | turn raw reviews into a dataset |
| `train`, `load_model` | train a classifier on a dataset, and predict with it |
| `embed` | learn word embeddings from text |
| `plots` | show the plots of a report in a notebook |
| `shoal_local_aws.testing` | run EMR steps and CDK apps against an AWS emulator in tests |

Importing the package is fast, because each name imports its libraries on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common.errors import DataError, ShoalError, TrainingError
    from corpus.dataset_settings import DEFAULT, Settings
    from jobs.merge import MergeResult
    from shoal.api.plotting import Plot, plots
    from shoal.api.preprocessing import preprocess
    from shoal.api.training import Model, embed, load_model, train
    from trainer.classification.labelling import Prediction

__all__ = [
    "DEFAULT",
    "DataError",
    "MergeResult",
    "Model",
    "Plot",
    "Prediction",
    "Settings",
    "ShoalError",
    "TrainingError",
    "embed",
    "load_model",
    "plots",
    "preprocess",
    "train",
]
_OF = {
    "common.errors": ("DataError", "ShoalError", "TrainingError"),
    "corpus.dataset_settings": ("DEFAULT", "Settings"),
    "jobs.merge": ("MergeResult",),
    "shoal.api.plotting": ("Plot", "plots"),
    "shoal.api.preprocessing": ("preprocess",),
    "shoal.api.training": ("Model", "embed", "load_model", "train"),
    "trainer.classification.labelling": ("Prediction",),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    from importlib import import_module

    for module, names in _OF.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
