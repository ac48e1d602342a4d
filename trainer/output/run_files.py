"""A run's output folder: its file names, whether a new run may write there, and files and folders that are written
whole or not at all.

A folder cannot be replaced in one step. So the old one is renamed first, and a writer that is killed before the new one
has the name leaves both, under hidden names.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common import files
from common.errors import DataError, TrainingError, explain_os_error
from common.json_values import parse_json_object

RECORD, SUMMARY, CHECKPOINTS, MODEL = "record.jsonl", "summary.json", "checkpoints", "model"
LAUNCH = "launch.json"
STREAM = "stream.npz"
"""What a run on a stream has made of its first parts, which may be gone later."""
CHECKPOINT_PATTERN = "step-*.pt"
"""The file names of checkpoints."""
CONFIG, WEIGHTS, VOCABULARY, MEASURES, CARD, ONNX = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "measures.json",
    "README.md",
    "model.onnx",
)
MODEL_FILES = (CONFIG, WEIGHTS, VOCABULARY, MEASURES, CARD, ONNX)
"""The file names of a model's folder. Only an export writes those of other programs."""
BINARY_VECTORS, TEXT_VECTORS, ENCODER = "vectors.bin", "vectors.txt", "encoder.safetensors"
VECTOR_FILES = (CONFIG, MEASURES, BINARY_VECTORS, TEXT_VECTORS, ENCODER)
"""The file names of such a folder with word embeddings. Only a character model writes the last one."""


def require_free_output(output: Path, *, force: bool) -> None:
    """Raise TrainingError if a run from the beginning would remove the checkpoints of an unfinished run, replace a
    folder that is no model, or, without `force`, replace a finished model."""
    checkpoints = output / CHECKPOINTS
    if any(checkpoints.glob(CHECKPOINT_PATTERN)) and not _has_ended(output):
        raise TrainingError(
            f"{checkpoints} holds checkpoints of a run that has not ended; continue with --resume, or remove that "
            "folder, or choose another --output"
        )
    _require_replaceable(output / MODEL)
    if not force and has_model(output):
        raise TrainingError(
            f"{output / MODEL} is a finished model; add --force to train one in its place, or choose another --output"
        )


def has_model(output: Path) -> bool:
    """Whether a run's folder has a model, and not only a part of one."""
    return (output / MODEL / CONFIG).exists()


def finished_summary(output: Path) -> dict[str, Any] | None:
    """The summary of a run that came to its end and left its model; None for any other."""
    summary = read_json(output / SUMMARY)
    if summary is None or summary.get("stopped") is not False:
        return None
    return summary if has_model(output) else None


def was_stopped(output: Path) -> bool:
    """Whether the run there was stopped; its model may then be replaced by the resumed run."""
    return (read_json(output / SUMMARY) or {}).get("stopped") is True


def _has_ended(output: Path) -> bool:
    return (read_json(output / SUMMARY) or {}).get("stopped") is False


def read_json(path: Path) -> dict[str, Any] | None:
    """The object that a JSON file holds; None where there is no such file, or it holds none."""
    with suppress(OSError, DataError):
        return parse_json_object(path.read_bytes())
    return None


def prepare_output(folder: Path) -> None:
    """Create the folder, and check that files can be written there. Raises TrainingError."""
    with explain_os_error(TrainingError, f"cannot write to {folder}", "choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, replacing the old file. Raises TrainingError, and then keeps the old file."""
    with explain_os_error(TrainingError, f"cannot write {path}", "free some space, then --resume"):
        files.write_whole(path, content)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill; after the block it is at `path`, in place of an old one, with all of its files on the disk.

    After an error the old one is still there. Raises TrainingError if `path` is no folder of a model's files, and
    OSError.
    """
    _require_replaceable(path)
    partial, old = (path.with_name(f".{path.name}.{state}") for state in ("partial", "old"))
    if not path.exists() and old.exists():  # a killed writer had renamed it
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
    """Raise TrainingError if there is something else than the folder of a model."""
    if model.is_symlink() or (model.exists() and not model.is_dir()):
        raise TrainingError(f"{model} is not a folder, and the model's folder has this name; choose another --output")
    with explain_os_error(TrainingError, f"cannot read {model}", "choose another --output"):
        known = {*MODEL_FILES, *VECTOR_FILES}
        other = sorted({each.name for each in model.iterdir()} - known) if model.is_dir() else []
    if other:
        raise TrainingError(
            f"the model would replace the folder {model}, but that has {other[0]!r}, which is no file of a "
            "model; choose another --output"
        )


def _remove(folder: Path) -> None:
    """Remove a folder, or a link or a file in its place."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def _synchronise(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
