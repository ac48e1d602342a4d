"""A run's output folder: its file names, whether a new run may write there, and files that are written whole or not at
all.
"""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainer.errors import TrainingError

RECORD, SUMMARY, CHECKPOINTS, MODEL = "record.jsonl", "summary.json", "checkpoints", "model.pt"
CHECKPOINT_PATTERN = "step-*.pt"
"""The file names of checkpoints."""
_LAST_LINE_BYTES = 1 << 20


def require_free_output(output: Path, *, force: bool) -> None:
    """Raise TrainingError if a run from the beginning would remove the checkpoints of an unfinished run, or, without
    `force`, replace a finished model."""
    checkpoints = output / CHECKPOINTS
    if any(checkpoints.glob(CHECKPOINT_PATTERN)) and not _has_ended(output):
        raise TrainingError(
            f"{checkpoints} holds checkpoints of a run that has not ended; go on with --resume, or remove that folder, "
            "or choose another --output"
        )
    if not force and (output / MODEL).exists():
        raise TrainingError(
            f"{output / MODEL} is a finished model; add --force to train one in its place, or choose another --output"
        )


def finished_summary(output: Path) -> dict[str, Any] | None:
    """The summary of a run that came to its end and left its model; None for any other."""
    summary = read_json(output / SUMMARY)
    return summary if summary and summary.get("stopped") is False and (output / MODEL).exists() else None


def was_stopped(output: Path) -> bool:
    """Whether the run there was stopped; its model may then be replaced by the resumed run."""
    return (read_json(output / SUMMARY) or {}).get("stopped") is True


def _has_ended(output: Path) -> bool:
    """Whether the run there came to its end, by its summary or the last line of its record."""
    for path in (output / SUMMARY, output / RECORD):
        with suppress(OSError, ValueError, IndexError, RecursionError):
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _LAST_LINE_BYTES))
                text = file.read()
            last = json.loads(text if path.name == SUMMARY else text.splitlines()[-1])
            if isinstance(last, dict) and last.get("stopped") is False:
                return True
    return False


def read_json(path: Path) -> dict[str, Any] | None:
    """The object that a JSON file holds; None where there is no such file, or it holds none."""
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(path.read_text("utf-8"))
        if isinstance(content, dict):
            return content
    return None


def prepare_output(folder: Path) -> None:
    """Create the folder, and check that files can be written there. Raises TrainingError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise TrainingError(f"cannot write to {folder}: {error.strerror}; choose another --output") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, replacing the old file. Raises TrainingError, and then keeps the old file."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # of a killed writer, or a link that would be followed
        with partial.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise TrainingError(f"cannot write {path}: {error.strerror}; free some space, then --resume") from error


def write_json(path: Path, content: Any) -> None:
    """Write an object to `path` as indented JSON, in the same way."""
    write_whole(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
