"""Files that appear under their name whole or not at all, whenever the process ends."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainer.errors import TrainingError


def prepare(folder: Path) -> None:
    """Make the folder, and see that files can be written there. Raises TrainingError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise TrainingError(f"cannot write to {folder}: {error.strerror}; choose another --output") from error


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` under `path`, in place of what was there. Raises TrainingError, and leaves the old file then."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise TrainingError(f"cannot write {path}: {error.strerror}; free some space, then --resume") from error


def write_json(path: Path, content: Any) -> None:
    """The same for an object as indented JSON."""
    write_whole(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())
