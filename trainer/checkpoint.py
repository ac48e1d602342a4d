"""Checkpoints: all that a run needs to go on as if nothing had happened, at any number of ranks.

The easy mistake is to trust what can be loaded: a checkpoint is torch's archive and the digest of all its bytes behind
it, which is checked first, as bits may have flipped; and what it holds is compared with the run that is to go on from
it, as the file may be another's.
"""

import io
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch

from corpus.errors import DataError
from corpus.plain import require_fields
from trainer import archive
from trainer.archive import DamagedError
from trainer.errors import TrainingError
from trainer.files import CHECKPOINT, write_whole
from trainer.optimise import Optimiser
from trainer.progress import Progress

KEPT = 2
FORMAT = 5
"""Of the states: it grows when their names or what they hold change."""

_DIGEST_BYTES = 16

_MAY_CHANGE = frozenset(
    (
        "data",
        "output",
        "global_batch",
        "rank_batch",
        "balance",
        "rebalance_every",
        "slow",
        "record_every",
        "checkpoint_minutes",
        "resume",
        "force",
        "rows_in",
        "cache",
        "threads",
        "gradient_bits",
        "precision",
    )
)
"""Settings that change what is learnt by no more than rounding. (The size of a global batch does: a resumed run
keeps its own.)"""

_MENDING = ("learning_rate", "word_rate", "clip_norm")
"""Those by which a run whose loss became no number can go on."""


def save(folder: Path, state: dict[str, Any], *, steps: int) -> Path:
    """Write `state` (tensors and plain values) as the checkpoint after `steps` steps, and drop all but the last two.

    Raises TrainingError when it cannot be written; those before it are still there then.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise TrainingError(
            f"cannot make the folder {folder}: {error.strerror}; remove what is in its place"
        ) from error
    path = folder / f"step-{steps:09}.pt"
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    write_whole(path, content + _digest(content))
    for old in _newest_first(folder)[KEPT:]:
        with suppress(OSError):  # an old one too many does no harm
            old.unlink()
    return path


def newest(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint that is whole, with its state on the CPU; None when there is none.

    Raises TrainingError when one cannot be read, and MemoryError: neither says that it is damaged.
    """
    for path in _newest_first(folder):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise TrainingError(
                f"cannot read {path}: {error.strerror}; mend that, or remove it to use the one before"
            ) from error
        body = content[:-_DIGEST_BYTES]
        if content[-_DIGEST_BYTES:] != _digest(body):
            continue
        try:
            return path, archive.read(io.BytesIO(body))
        except DamagedError:
            continue
    return None


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()


def damaged(folder: Path, used: Path | None) -> list[Path]:
    """The checkpoints newer than the one used, or all: those that `newest` had to pass over."""
    return [path for path in _newest_first(folder) if used is None or path.name > used.name]


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it is neither used nor removed."""
    with suppress(OSError):  # then it is passed over again
        path.rename(path.with_name(f"{path.name}.damaged"))


def check(state: dict[str, Any], config: dict[str, Any], digest: str, *, where: Path) -> list[str]:
    """Raise TrainingError when a run with this configuration on this dataset cannot go on from this state.

    Returns a sentence for each setting that may change, but changes what is learnt.
    """
    if state.get("format") != FORMAT:
        raise TrainingError(f"the checkpoints in {where} are of another version of Shoal; start in another --output")
    try:
        _require_state(state, config)
    except (DamagedError, DataError) as error:
        raise _damaged(where, error) from error
    otherwise = "resume with what it was made with, or start in another --output"
    if state["digest"] != digest:
        raise TrainingError(
            f"the checkpoints in {where} were made with another dataset than {config['data']}; {otherwise}"
        )
    for name, value in state["config"].items():
        if name not in _MAY_CHANGE and name not in _MENDING and config[name] != value:
            made, now = _said(name, value), _said(name, config[name])
            raise TrainingError(f"the checkpoints in {where} were made with {made}, not {now}; {otherwise}")
    return [
        f"going on with {_said(name, config[name])}; it was {value}"
        for name, value in state["config"].items()
        if name in _MENDING and config[name] != value
    ]


def restore(state: dict[str, Any], model: torch.nn.Module, optimiser: Optimiser, *, where: Path) -> Progress:
    """Give a model and its optimiser what a state has for them; returns how far the run had come.

    `state` has passed `check`. Raises TrainingError where it is of another model.
    """
    try:
        progress = Progress(**state["progress"])
        expected = model.state_dict()
        archive.require_tensors(state["model"], expected)
        archive.require_tensors(state["optimiser"], optimiser.state())
        model.load_state_dict(state["model"])
        optimiser.restore(state["optimiser"])
    except (DamagedError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise _damaged(where, error) from error
    return progress


def _require_state(state: dict[str, Any], config: dict[str, Any]) -> None:
    kinds = {"config": dict, "digest": str, "global_batch": int, "progress": dict, "model": dict, "optimiser": dict}
    for name, kind in kinds.items():
        if not isinstance(state.get(name), kind):
            raise DamagedError(f"they hold no {name}")
    if not state["config"].keys() <= config.keys() or state["global_batch"] < 1:
        raise DamagedError("they were made with options that are unknown")
    require_fields(Progress, state["progress"])
    if any(isinstance(value, (int, float)) and not value >= 0 for value in state["progress"].values()):
        raise DamagedError("they are of less than no step")


def _damaged(where: Path, error: Exception) -> TrainingError:
    said = " ".join(str(error).split())
    return TrainingError(f"the checkpoints in {where} are none of this run: {said}; start in another --output")


def _said(name: str, value: Any) -> str:
    flag = "--" + name.replace("_", "-")
    return f"no {flag} of its own" if value is None else f"{flag} {value}"


def clear(folder: Path) -> None:
    """Remove all checkpoints, as a run that starts from the beginning does."""
    for path in _newest_first(folder):
        path.unlink()


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob(CHECKPOINT), reverse=True)
