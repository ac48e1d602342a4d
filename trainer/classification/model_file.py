"""Reads `model.pt`, the file that earlier versions wrote for a model. Training writes a folder (model_folder.py)."""

from pathlib import Path
from typing import Any

from corpus.errors import DataError
from trainer.classification.trained_model import TrainedModel, fill, unfilled
from trainer.errors import TrainingError
from trainer.output import archive
from trainer.output.archive import DamagedError

FORMAT = 4


def read_model_file(path: Path, shown: str) -> TrainedModel:
    """The model in a file; `shown` is its address for messages.

    Raises TrainingError if it cannot be read, or if this version of Shoal cannot read it.
    """
    try:
        with path.open("rb") as file:
            content = archive.read(file)
        if content.get("format") == FORMAT:
            state: Any = content.get("state")
            numbers = archive.stored_numbers(state)
            return fill(unfilled({"words": "letters", "classes": [], **content}, numbers), state)
    except OSError as error:
        raise TrainingError(f"cannot read {shown}: {error.strerror}") from error
    except MemoryError:
        raise TrainingError(f"{shown} does not fit into this machine's memory") from None
    except (DamagedError, DataError, TrainingError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(f"{shown} is not a model written by `shoal train`, or a damaged one: {reason}") from error
    raise TrainingError(f"{shown} is not a model of format {FORMAT}, which this Shoal reads; train it again")
