"""A dataset to a trained model: an ordinary distributed data-parallel program, started by torchrun.

`python -m trainer --help` explains the options; `loop.py` is the training loop. What is learnt is a task's (`task.py`):
those are in `classification/` and `embeddings/`. The package knows the dataset's layout (`corpus`) and nothing of
clusters: ranks of any speed, on any number of machines, are processes that find each other through torchrun's
environment. Shoal starts them by `python -m trainer.launch`, which is torchrun and knows which failures are worth
another start.

For programs: `from trainer import load_model, train` (`interface.py`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.interface import Model, Prediction, TrainingError, load_model, train

__all__ = ["Model", "Prediction", "TrainingError", "load_model", "train"]


def __getattr__(name: str) -> Any:
    """Import the interface for programs when it is asked for: nodes have not all that it needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trainer import interface

    return getattr(interface, name)
