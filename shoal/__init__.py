"""Shoal for other programs: what a name in this package does, it does in each minor version. Names outside of it may
change in any version.

| name | what it is for |
|---|---|
| `preprocess` | raw reviews to a dataset |
| `train`, `load_model` | a dataset to a classifier, and its predictions |
| `embed` | text to word embeddings |
| `plots` | the plots of a report, for notebooks |
| `shoal_local_aws.testing` | AWS on this machine: steps on EMR and CDK apps really run in a test |

Importing the package is cheap: a library is loaded when what needs it is asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common.errors import DataError, JobError, ShoalError, TrainingError
    from corpus.dataset_settings import DEFAULT, Settings
    from jobs.merge import MergeResult
    from shoal.plotting import Plot, plots
    from shoal.preprocessing import preprocess
    from shoal.training import Model, embed, load_model, train
    from trainer.classification.labelling import Prediction

__all__ = [
    "DEFAULT",
    "DataError",
    "JobError",
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
    "common.errors": ("DataError", "JobError", "ShoalError", "TrainingError"),
    "corpus.dataset_settings": ("DEFAULT", "Settings"),
    "jobs.merge": ("MergeResult",),
    "shoal.plotting": ("Plot", "plots"),
    "shoal.preprocessing": ("preprocess",),
    "shoal.training": ("Model", "embed", "load_model", "train"),
    "trainer.classification.labelling": ("Prediction",),
}


def __getattr__(name: str) -> Any:
    """Import a name when it is asked for."""
    from importlib import import_module

    for module, names in _OF.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
