"""Finds a trained model by its address and reads it: a model's folder, or a run's folder, here or on S3.

Do not take what cannot be looked at for absent: a folder without permission is an error of its own.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import TrainingError
from common.private_folders import temporary_folder
from corpus.reading import s3
from corpus.reading.s3 import is_s3
from corpus.reading.storage import join
from trainer.classification.model_folder import READ, read_config, read_model_folder
from trainer.classification.trained_model import TrainedModel
from trainer.output.run_files import CONFIG, MODEL
from trainer.output.stored_files import require_size


def load_model(address: Path | str) -> TrainedModel:
    """Read the model at an address: a path or s3://..., of a model's folder, or of a training's `--output`.

    Raises TrainingError if there is none, or if this version of Shoal cannot read it; DataError if S3 cannot be read.
    """
    folder = _find(str(address))
    with _local_folder(folder) as path:
        return read_model_folder(path, folder)


def _find(address: str) -> str:
    folders = [join(address, name).rpartition("/")[0] for name in (CONFIG, f"{MODEL}/{CONFIG}")]
    for folder in folders:
        if _is_file(join(folder, CONFIG)):
            return folder
    for folder in folders:
        if begun := [name for name in READ if _is_file(join(folder, name))]:
            raise TrainingError(
                f"{folder} has {begun[0]} but no {CONFIG}: the model is being written, or was not copied whole; copy "
                "or export it again"
            )
    raise TrainingError(
        f"there is no model at {address}: neither {CONFIG} nor {MODEL}/{CONFIG}; `shoal train` writes one when it has "
        "finished"
    )


@contextmanager
def _local_folder(address: str) -> Iterator[Path]:
    """A path to a model's folder; for S3 a copy, which is deleted afterwards. Raises DataError and TrainingError."""
    if not is_s3(address):
        yield Path(address)
        return
    client = s3.client()
    with temporary_folder("shoal-model-") as folder:
        there = join(address, CONFIG)
        with s3.explained_errors(there, "read"):
            s3.download(client, s3.place_of(there), folder / CONFIG)
        config = read_config(folder / CONFIG, address)
        for file in READ:
            there = join(address, file)
            with s3.explained_errors(there, "read"):
                require_size(there, s3.head(client, s3.place_of(there))["ContentLength"], config)
                s3.download(client, s3.place_of(there), folder / file)
        yield folder


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
