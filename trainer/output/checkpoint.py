"""Checkpoints: the whole state that is needed to resume a run, on any number of ranks.

Do not trust a file because it can be loaded. A checkpoint is a torch archive followed by the digest of its bytes. The
digest is checked first, because bits might have flipped. The content is checked next, because a different program or
version might have written it. resuming.py and start.py check that it belongs to the run.
"""

import io
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch

from common.checked_values import require_fields
from common.errors import DataError, TrainingError, explain_os_error
from common.files import open_regular
from trainer.computing.optimiser import Optimiser
from trainer.config import setting_names
from trainer.options.optimisation_options import KEPT_ON_RESUME, OptimisationOptions
from trainer.output import archive
from trainer.output.archive import DamagedError
from trainer.output.run_files import CHECKPOINT_PATTERN, write_whole
from trainer.task import RowStream

KEPT = 2
FORMAT = 18
"""Version of the state format. It increases when names or content change."""

_DIGEST_BYTES = 16
_BLOCK_BYTES = 1 << 20

_KINDS = {
    "config": dict,
    "digest": str,
    "global_batch": int,
    "progress": dict,
    "model": dict,
    "optimiser": dict,
    "task": dict,
}


@dataclass(kw_only=True)
class Progress:
    """Progress of a run since its first start."""

    epoch: int = 0
    step: int = 0
    """Number of steps taken in this epoch."""
    rows_seen: int = 0
    seconds: float = 0.0
    """Seconds of training."""
    loss_sum: float = 0.0
    """Sum of the losses of the rows in this epoch so far."""
    validation: dict[str, float] | None = None
    """Loss and measures on the validation rows after the latest epoch; None before the first evaluation."""

    def end_epoch(self) -> None:
        self.epoch, self.step, self.loss_sum = self.epoch + 1, 0, 0.0


class UnusableCheckpoint(NamedTuple):
    """Checkpoint from which no run can be resumed."""

    path: Path
    why: str
    """Reason, as the rest of a sentence that begins with the path."""
    whole: bool
    """True if the file is intact. A different version of Shoal can possibly resume from it."""


def save(folder: Path, state: dict[str, Any], *, steps: int) -> Path:
    """Write `state` (tensors and plain values) as the checkpoint after `steps` steps, and keep only the latest two.

    Returns the path of the checkpoint. Raises TrainingError if writing fails; the earlier checkpoints then still exist.
    """
    with explain_os_error(TrainingError, f"cannot create the folder {folder}", "remove the file with this name"):
        folder.mkdir(exist_ok=True)
    path = folder / f"step-{steps:09}.pt"
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    write_whole(path, content + blake2b(content, digest_size=_DIGEST_BYTES).digest())
    before = [each for each in list_checkpoints(folder) if each.name < path.name]  # not the later, invalid ones
    for old in before[KEPT - 1 :]:
        with suppress(OSError):  # an old checkpoint is harmless
            old.unlink()
    return path


_MOST = 10**15
"""Largest plausible number of steps, rows or seconds. Larger values would overflow."""


def newest(folder: Path) -> tuple[tuple[Path, dict[str, Any]] | None, list[UnusableCheckpoint]]:
    """Return the path and state of the latest valid checkpoint (or None), and the later checkpoints that are invalid.

    Raises TrainingError if a file is unreadable, or MemoryError. Neither error means that the file is damaged.
    """
    passed_over = []
    for path in list_checkpoints(folder):
        if path.is_dir():
            passed_over.append(UnusableCheckpoint(path, "is a folder", whole=False))
            continue
        with (
            explain_os_error(
                TrainingError, f"cannot read {path}", "make it readable, or remove it to use the previous checkpoint"
            ),
            open_regular(path) as file,
        ):
            body = _read_undamaged(file)
        if body is None:
            passed_over.append(UnusableCheckpoint(path, "is damaged", whole=False))
            continue
        try:
            state = archive.read(body)
            require_state(state)
        except (DamagedError, DataError) as error:
            passed_over.append(
                UnusableCheckpoint(path, f"is not a checkpoint of this version of Shoal ({error})", whole=True)
            )
            continue
        return (path, state), passed_over
    return None, passed_over


def _read_undamaged(file: BinaryIO) -> bytes | None:
    """Return the torch archive in a checkpoint, or None if it does not match its digest.

    A damaged file can have any size, so the digest is checked before the archive is read into memory.
    """
    size = left = max(0, file.seek(0, io.SEEK_END) - _DIGEST_BYTES)
    file.seek(0)
    digest = blake2b(digest_size=_DIGEST_BYTES)
    while block := file.read(min(left, _BLOCK_BYTES)):
        digest.update(block)
        left -= len(block)
    if file.read(_DIGEST_BYTES) != digest.digest():
        return None
    file.seek(0)
    return file.read(size)


def require_state(state: dict[str, Any]) -> None:
    """Raise DamagedError or DataError unless `state` is the state of a run, written by this version of Shoal."""
    if not isinstance(state.get("format"), int) or state["format"] != FORMAT:
        raise DamagedError(f"it is not of format {FORMAT}")
    for name, kind in _KINDS.items():
        if not isinstance(state.get(name), kind):
            raise DamagedError(f"it does not contain {name}")
    if not state["config"].keys() <= setting_names() or state["global_batch"] < 1:
        raise DamagedError("it has unknown options")
    kept = {name: state["config"][name] for name in KEPT_ON_RESUME if name in state["config"]}
    require_fields(OptimisationOptions, kept)
    require_fields(Progress, state["progress"])
    if any(isinstance(value, (int, float)) and not 0 <= value <= _MOST for value in state["progress"].values()):
        raise DamagedError("its progress has impossible numbers")
    for tensors in (state["model"], state["optimiser"]):
        archive.require_finite(tensors)


def set_aside(path: Path) -> None:
    """Rename an invalid checkpoint, so that later runs neither use it nor remove it."""
    with suppress(OSError):  # the next start then finds and ignores it again
        path.rename(path.with_name(f"{path.name}.damaged"))


def latest(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the state of the latest valid checkpoint (None without one), and notes for the user.

    Rename later checkpoints that are invalid. Raises TrainingError if a different version of Shoal wrote the only ones.
    """
    found, unusable = newest(folder)
    for passed in unusable:
        if passed.whole and found is None:  # usually hours of work, although a different version wrote it
            raise TrainingError(
                f"{passed.path} {passed.why}, and it is the only checkpoint; resume with the version that wrote it, "
                "or choose another --output"
            )
    for passed in unusable:
        set_aside(passed.path)
    if found:
        path, state = found
        return state, [f"{passed.path} {passed.why}; resuming from {path.name}" for passed in unusable]
    missing = [] if unusable else [f"{folder} contains no checkpoint; starting from the beginning"]
    return None, missing + [f"{passed.path} {passed.why}; starting from the beginning" for passed in unusable]


def restore(
    state: dict[str, Any],
    model: torch.nn.Module,
    optimiser: Optimiser,
    stream: RowStream | None,
    *,
    where: Path,
) -> Progress:
    """Load a state into a model, its optimiser and its stream of rows, if any. Return the progress of the run.

    `state` is a state that `newest` returned. `where`: the folder, for the message. Raises TrainingError if the state
    belongs to a different model.
    """
    try:
        progress = Progress(**state["progress"])
        expected = model.state_dict()
        archive.require_tensors(state["model"], expected)
        archive.require_tensors(state["optimiser"], optimiser.state())
        if stream is not None:
            stream.restore(state["task"])
        model.load_state_dict(state["model"])
        optimiser.restore(state["optimiser"])
    except (DamagedError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(
            f"the checkpoints in {where} do not belong to this run: {reason}; choose another --output"
        ) from error
    return progress


def clear(folder: Path) -> None:
    """Remove all checkpoints in a folder, before a run starts from the beginning."""
    for path in list_checkpoints(folder):
        path.unlink()


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the paths of all checkpoints in a folder, latest first."""
    return sorted(folder.glob(CHECKPOINT_PATTERN), reverse=True)
