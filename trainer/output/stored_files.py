"""What `config.json` says of a model's folder: the size and digest of each other file, and its own digest."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from common.errors import TrainingError
from trainer.output.archive import DamagedError
from trainer.output.run_files import CONFIG

_DIGEST_BYTES = 16


def with_digest(config: Mapping[str, Any]) -> dict[str, Any]:
    """The content of `config.json` with its digest, which is that of the model."""
    return {**config, "digest": _digest(config)}


def check_config(config: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise DamagedError unless `config` has the right digest, names these files, and has data."""
    if config.get("digest") != _digest(config):
        raise DamagedError("its digest is not that of its content")
    files = config.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(files.get(name), dict)
        and type(files[name].get("bytes")) is int
        and isinstance(files[name].get("digest"), str)
        for name in names
    ):
        raise DamagedError(f"it does not name {', '.join(names)}, each with its bytes and digest")
    if not isinstance(config.get("data"), dict):
        raise DamagedError("it has no data, or some of another type")


def stored(path: Path) -> dict[str, Any]:
    """The size and digest of a file."""
    with path.open("rb") as file:
        digest = file_digest(file, lambda: blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
        return {"bytes": file.tell(), "digest": digest}


def require_size(file: str, size: int, config: Mapping[str, Any]) -> None:
    """Raise TrainingError unless a file of this address has the size that `config.json` gives."""
    expected = config["files"][file.rpartition("/")[2]]["bytes"]
    if size != expected:
        raise TrainingError(
            f"{file} has {size:,} bytes, and {CONFIG} says {expected:,}: the model is being written, or was not copied "
            "whole; copy or export it again"
        )


def require_stored(path: Path, shown: str, config: Mapping[str, Any]) -> None:
    """Raise TrainingError unless a file, of the address `shown`, is there as it was written."""
    try:
        require_size(shown, path.stat().st_size, config)
        found = stored(path)
    except FileNotFoundError:
        raise TrainingError(f"{shown} is missing: the model was not copied whole; copy or export it again") from None
    except OSError as error:
        raise TrainingError(f"cannot read {shown}: {error.strerror}") from error
    if found != config["files"][path.name]:
        raise TrainingError(
            f"{shown} is not the file that {CONFIG} names, or is damaged; copy or export the model again"
        )


def _digest(config: Mapping[str, Any]) -> str:
    """The digest of all fields of `config.json` but its own."""
    content = json.dumps({name: value for name, value in config.items() if name != "digest"}, sort_keys=True)
    return blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()
