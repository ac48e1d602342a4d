"""Finds a trained model by its address and reads it: a model's folder, a run's folder, or `model.pt`, here or on S3.

Do not take what cannot be looked at for absent: a folder without permission is an error of its own.
"""

import stat
from pathlib import Path
from typing import Any

from common.errors import DataError, TrainingError
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from corpus.reading.storage import join, readable
from trainer.classification.model_folder import READ, read_config, read_model_folder
from trainer.classification.trained_model import TrainedModel, fill, unfilled
from trainer.output import archive
from trainer.output.archive import DamagedError
from trainer.output.run_files import CONFIG, MODEL, OLD_MODEL
from trainer.output.stored_files import local_folder

_ENDINGS = (Path(OLD_MODEL).suffix,)
MODEL_FILE_FORMAT = 4


def load_model(address: Path | str) -> TrainedModel:
    """Read the model at an address: a path or s3://..., of a model's folder, of a training's `--output`, or
    of a `model.pt` that an earlier version has written.

    Raises TrainingError if there is none, or if this version of Shoal cannot read it; DataError if S3 cannot be read.
    """
    found = _find(str(address))
    if found.endswith(_ENDINGS):
        with readable(found) as path:
            return _read_model_file(path, found)
    folder = found.rpartition("/")[0]
    with local_folder(folder, READ, read_config) as path:
        return read_model_folder(path, folder)


def _find(address: str) -> str:
    """The address of the `config.json` of a model's folder, or of a file that is a whole model."""
    if address.endswith(_ENDINGS) and _is_file(address):
        return address
    places = [join(address, name) for name in (CONFIG, f"{MODEL}/{CONFIG}", OLD_MODEL)]
    for place in places:
        if _is_file(place):
            return place
    for place in places[:2]:
        folder = place.rpartition("/")[0]
        if begun := [name for name in READ if _is_file(join(folder, name))]:
            raise TrainingError(
                f"{folder} has {begun[0]} but no {CONFIG}: the model is being written, or was not copied whole; copy "
                "or export it again"
            )
    raise TrainingError(
        f"there is no model at {address}: neither {CONFIG}, nor {MODEL}/{CONFIG}, nor {OLD_MODEL}; `shoal train` "
        "writes one when it has finished"
    )


def _is_file(address: str) -> bool:
    """Whether there is a file. Raises TrainingError or DataError where that cannot be found out."""
    if is_s3(address):
        with s3.explained_errors(address, "look for"):
            return s3.head_if_there(s3.client(), s3.place_of(address)) is not None
    try:
        return stat.S_ISREG(Path(address).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise TrainingError(f"cannot read {address}: {error.strerror}; check its permissions") from error


def _read_model_file(path: Path, shown: str) -> TrainedModel:
    """The model in a `model.pt`, the file that earlier versions wrote; `shown` is its address for messages. Raises
    TrainingError if it cannot be read, or if this version of Shoal cannot read it."""
    try:
        with path.open("rb") as file:
            content = archive.read(file)
        if content.get("format") == MODEL_FILE_FORMAT:
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
    raise TrainingError(f"{shown} is not a model of format {MODEL_FILE_FORMAT}, which this Shoal reads; train it again")
