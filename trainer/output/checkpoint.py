"""Checkpoints: all state that resuming a run needs, on any number of ranks.

Do not trust a file because it can be loaded. A checkpoint is a torch archive followed by the digest of its bytes. The
digest is checked first, because bits may have flipped. The content is checked next, because another program or version
may have written it. start.py checks whether a checkpoint belongs to the run to resume.
"""

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import torch

from common.errors import DataError, TrainingError, explain_os_error
from common.json_values import require_fields
from trainer.computing.optimiser import Optimiser
from trainer.config import TrainConfig
from trainer.output import archive
from trainer.output.archive import DamagedError
from trainer.output.run_files import CHECKPOINT_PATTERN, write_whole

KEPT = 2
FORMAT = 15
"""Version of the state format. It increases when names or content change."""

_DIGEST_BYTES = 16

_KINDS = {
    "config": dict,
    "digest": str,
    "global_batch": int,
    "progress": dict,
    "model": dict,
    "optimiser": dict,
    "task": dict,
    "search": dict,
}


@dataclass(kw_only=True)
class RunProgress:
    """Progress of a run: counts over all of its starts."""

    epoch: int = 0
    step: int = 0
    """Steps done in this epoch; all of them while the evaluation is pending."""
    rows_seen: int = 0
    seconds: float = 0.0
    """Training time."""
    loss_sum: float = 0.0
    """Sum of the loss over this epoch's rows so far."""
    validation: dict[str, float] | None = None
    """Loss and measures of the latest epoch on the validation rows."""

    def end_epoch(self) -> None:
        self.epoch, self.step, self.loss_sum = self.epoch + 1, 0, 0.0


class UnusableCheckpoint(NamedTuple):
    """Checkpoint from which no run can be resumed."""

    path: Path
    why: str
    """Rest of a sentence that begins with the path."""
    whole: bool
    """True if the file is intact: it may still be useful to the user."""


def save(folder: Path, state: dict[str, Any], *, steps: int) -> Path:
    """Write `state` (tensors and plain values) as the checkpoint after `steps` steps, and keep only the latest two.

    Raises TrainingError if the write fails; the earlier checkpoints then still exist.
    """
    with explain_os_error(TrainingError, f"cannot make the folder {folder}", "remove the file with this name"):
        folder.mkdir(exist_ok=True)
    path = folder / f"step-{steps:09}.pt"
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    write_whole(path, content + _digest(content))
    before = [each for each in list_checkpoints(folder) if each.name < path.name]  # a later one was not renamed
    for old in before[KEPT - 1 :]:
        with suppress(OSError):  # an old checkpoint is harmless
            old.unlink()
    return path


_MOST = 10**15
"""Largest plausible count of steps, rows or seconds; larger values would overflow."""


def newest(folder: Path) -> tuple[tuple[Path, dict[str, Any]] | None, list[UnusableCheckpoint]]:
    """Return the latest valid checkpoint and its state on the CPU, or None; and the later invalid ones.

    Raises TrainingError if a file is unreadable, and MemoryError: neither means that it is damaged.
    """
    passed_over = []
    for path in list_checkpoints(folder):
        if path.is_dir():
            passed_over.append(UnusableCheckpoint(path, "is a folder", whole=False))
            continue
        with explain_os_error(
            TrainingError, f"cannot read {path}", "make it readable, or remove it to use the previous one"
        ):
            content = path.read_bytes()
        body = content[:-_DIGEST_BYTES]
        if content[-_DIGEST_BYTES:] != _digest(body):
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


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()


def require_state(state: dict[str, Any]) -> None:
    """Raise DamagedError or DataError unless `state` is the state of a run of this version."""
    if not isinstance(state.get("format"), int) or state["format"] != FORMAT:
        raise DamagedError(f"it is not of format {FORMAT}")
    for name, kind in _KINDS.items():
        if not isinstance(state.get(name), kind):
            raise DamagedError(f"it holds no {name}")
    known = {entry.name for entry in fields(TrainConfig)}
    if not state["config"].keys() <= known or state["global_batch"] < 1:
        raise DamagedError("it has unknown options")
    numbers = ("epochs", "global_batch", "rank_batch")
    require_fields(TrainConfig, {name: state["config"][name] for name in numbers if name in state["config"]})
    require_fields(RunProgress, state["progress"])
    if any(isinstance(value, (int, float)) and not 0 <= value <= _MOST for value in state["progress"].values()):
        raise DamagedError("its progress has impossible numbers")
    for tensors in (state["model"], state["optimiser"]):
        archive.require_finite(tensors)


def set_aside(path: Path) -> None:
    """Rename an invalid checkpoint, so that it is neither used nor removed."""
    with suppress(OSError):  # it is then ignored again
        path.rename(path.with_name(f"{path.name}.damaged"))


def restore(
    state: dict[str, Any],
    model: torch.nn.Module,
    optimiser: Optimiser,
    restore_task: Callable[[Mapping[str, Any]], None],
    *,
    where: Path,
) -> RunProgress:
    """Load a state into a model, its optimiser and, through `restore_task`, its task. Return the progress of the run.

    `state` comes from `newest`. Raises TrainingError if it belongs to another model.
    """
    try:
        progress = RunProgress(**state["progress"])
        expected = model.state_dict()
        archive.require_tensors(state["model"], expected)
        archive.require_tensors(state["optimiser"], optimiser.state())
        restore_task(state["task"])
        model.load_state_dict(state["model"])
        optimiser.restore(state["optimiser"])
    except (DamagedError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise TrainingError(
            f"the checkpoints in {where} are not of this run: {reason}; start in another --output"
        ) from error
    return progress


def clear(folder: Path) -> None:
    """Remove all checkpoints, for a run that starts from the beginning."""
    for path in list_checkpoints(folder):
        path.unlink()


def list_checkpoints(folder: Path) -> list[Path]:
    """Return all checkpoints, latest first."""
    return sorted(folder.glob(CHECKPOINT_PATTERN), reverse=True)
