"""Output folder of a run: names of its files, protection of earlier results, and atomic writes of files and folders.

No system call replaces a folder atomically. So the old folder is first renamed, and then the new folder. If a writer is
killed between these two steps, both folders exist under hidden names.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common import files
from common.errors import DataError, TrainingError, explain_os_error
from common.files import DOCUMENT_BYTES, read_regular
from common.json_values import parse_json_object
from common.starter import END_SECONDS

RECORD, SUMMARY, CHECKPOINTS, MODEL = "record.jsonl", "summary.json", "checkpoints", "model"
LAUNCH = "launch.json"
STREAM = "stream.npz"
"""State that a run on a stream computed from the first parts of the stream. These parts might not exist later."""
CHECKPOINT_PATTERN = "step-*.pt"
"""Pattern of the file names of checkpoints."""
CONFIG, WEIGHTS, VOCABULARY, MEASURES, ONNX, PROGRAM, REQUIREMENTS = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "measures.json",
    "model.onnx",
    "predict.py",
    "requirements.txt",
)
MODEL_FILES = (CONFIG, WEIGHTS, VOCABULARY, MEASURES, ONNX, PROGRAM, REQUIREMENTS)
"""File names in a model's folder. Only an export writes the files for other programs."""
BINARY_VECTORS, TEXT_VECTORS, ENCODER = "vectors.bin", "vectors.txt", "encoder.safetensors"
VECTOR_FILES = (CONFIG, MEASURES, BINARY_VECTORS, TEXT_VECTORS, ENCODER)
"""File names in a folder of word embeddings. Only a character model writes ENCODER."""

_LOCK_PAUSE_SECONDS = 0.5


def require_free_output(output: Path, *, force: bool) -> None:
    """Raise TrainingError if a new run would overwrite results.

    Results are the checkpoints of an unfinished run and a folder that is not a model. Without `force`, a finished model
    is also a result.
    """
    checkpoints = output / CHECKPOINTS
    if any(checkpoints.glob(CHECKPOINT_PATTERN)) and _field_stopped(output) is not False:
        raise TrainingError(
            f"{checkpoints} contains checkpoints of a run that has not ended; continue with --resume, or remove that "
            "folder, or choose another --output"
        )
    _require_replaceable(output / MODEL)
    if has_model(output):
        files.require_replaceable(f"{output / MODEL} is a finished model", TrainingError, force=force)


def has_model(output: Path) -> bool:
    """Return whether a run's output folder contains a complete model."""
    return (output / MODEL / CONFIG).exists()


def finished_summary(output: Path) -> dict[str, Any] | None:
    """Return the summary of a run if the run finished and saved its model; otherwise None."""
    summary = read_json(output / SUMMARY)
    if summary is None or summary.get("stopped") is not False:
        return None
    return summary if has_model(output) else None


def was_stopped(output: Path) -> bool:
    """Return whether the run was stopped. In this case the resumed run is allowed to replace the model of the run."""
    return _field_stopped(output) is True


def _field_stopped(output: Path) -> Any:
    return (read_json(output / SUMMARY) or {}).get("stopped")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file does not exist or does not contain a JSON object."""
    with suppress(OSError, DataError):
        return parse_json_object(read_regular(path, DOCUMENT_BYTES))
    return None


def prepare_output(folder: Path) -> None:
    """Create the output folder of a run, and check that it is writable. Raises TrainingError if it is not writable."""
    with explain_os_error(TrainingError, f"cannot write to {folder}", "choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def missing_output(folder: Path) -> TrainingError:
    """Return the error for an output folder that is no longer at its path."""
    return TrainingError(
        f"{folder} was removed, moved or unmounted during the training, so Shoal cannot save the run; restore the "
        "folder and continue with --resume, or train again with a different --output"
    )


@contextmanager
def locked_output(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's output folder for a block, so that no other process writes to the folder.

    The command that started the run has a shared lock, which this process shares. If the ranks of a killed command
    still hold the lock, wait until they end. Raises TrainingError if they do not end.
    """
    handle = _lock(folder)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(folder: Path) -> int | None:
    """Return the file descriptor that holds the lock; None if the file system cannot lock folders."""
    deadline = time.monotonic() + 2 * END_SECONDS
    while True:
        for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
            try:
                return files.lock(folder, is_folder=True, kind=kind)
            except BlockingIOError:
                continue
            except OSError:
                return None
        if time.monotonic() > deadline:
            raise TrainingError(
                f"another run is writing to {folder}; wait until it has finished, or choose another --output"
            )
        time.sleep(_LOCK_PAUSE_SECONDS)


def write_whole(path: Path, content: bytes) -> None:
    """Atomically replace a file. Raises TrainingError if writing fails; the old file is then kept."""
    with explain_os_error(TrainingError, f"cannot write {path}", "free some space, then --resume"):
        files.write_whole(path, content)


@contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder, to be filled in the block. After the block the new folder replaces the folder at `path`.

    All files are on disk before the replacement. After an error the old folder still exists. Raises TrainingError if
    `path` exists but is not the folder of a model, and OSError if a file operation fails.
    """
    _require_replaceable(path)
    partial, old = (path.with_name(f".{path.name}.{state}") for state in ("partial", "old"))
    if not path.exists() and old.exists():  # a killed writer had renamed the old folder
        old.rename(path)
    try:
        for left in (partial, old):
            _remove(left)
        partial.mkdir()
        yield partial
        for each in (*partial.iterdir(), partial):
            _synchronise(each)
        if path.exists():
            path.rename(old)
        partial.rename(path)
        _synchronise(path.parent)
    finally:
        if not path.exists() and old.exists():
            old.rename(path)
        for left in (partial, old):
            with suppress(OSError):
                _remove(left)


def _require_replaceable(model: Path) -> None:
    """Raise TrainingError if the path exists and is not the folder of a model."""
    if model.is_symlink() or (model.exists() and not model.is_dir()):
        raise TrainingError(
            f"the model would be written to the folder {model}, but this is not a folder; choose a different --output"
        )
    with explain_os_error(TrainingError, f"cannot read {model}", "choose another --output"):
        known = {*MODEL_FILES, *VECTOR_FILES}
        other = sorted({each.name for each in model.iterdir()} - known) if model.is_dir() else []
    if other:
        raise TrainingError(
            f"the model would replace the folder {model}, but that has {other[0]!r}, which is not a file of a "
            "model; choose another --output"
        )


def _remove(folder: Path) -> None:
    """Remove a folder, or a link or file with the same path."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _synchronise(path: Path) -> None:
    """Wait until the bytes of a file, or the entries of a folder, are on disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
