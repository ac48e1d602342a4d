"""Failures of ranks, from which the launcher finds the root cause and decides whether to restart the ranks.

A rank that fails writes its failure to a file for its launcher (launch.py), which prints the failures of all its ranks.
Do not rely on the order of output: ranks that lost a peer often report their failure before the peer reports its own.
The peer might not report a failure at all. So a failure records its time, and whether it is a cause or a consequence.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from common.errors import DataError, TrainingError
from common.files import read_tail
from common.json_values import from_json, parse_json_object
from trainer.rank_errors import LostError, RankError

NODE = "SHOAL_NODE"
"""Environment variable with the user's name for this machine; unset if the run has only one machine."""
LOST = "SHOAL_LOST"
"""Environment variable of restarted ranks: the failure that ended the previous attempt."""
FOLDER = "SHOAL_FAULTS"
"""Environment variable with the folder in which ranks write their failures for the launcher."""
MEETING = "SHOAL_MEETING"
"""Environment variable of a launcher: the path of a file that exists while the launcher waits for other machines."""

_PREFIX = "failed: "
_STARTED, _SUFFIX = "started", ".failed"


class FailureKind(StrEnum):
    FINAL = "final"
    """Error that would recur after a restart."""
    CAUSE = "cause"
    """Error that ended the attempt, and might not recur after a restart."""
    CONSEQUENCE = "consequence"
    """Error that results from the failure of another rank or machine."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Failure of a rank, or of all ranks of a machine."""

    kind: FailureKind
    time: float
    """Unix timestamp."""
    what: str
    where: str | None = None
    """Position in the run, such as `at step 5`."""
    then: str = ""
    """End of the message after `where`: details, and what the user can do."""
    attempt: int = 0
    """Number of restarts before this failure."""

    @property
    def short(self) -> str:
        return f"{self.what} {self.where}" if self.where else self.what

    def __str__(self) -> str:
        return self.short + self.then

    def line(self) -> str:
        """Return the failure as one line of output, which `parse` can read."""
        return _PREFIX + json.dumps(asdict(self))


def parse(line: str) -> Failure | None:
    """Return the failure that a line of output contains; None if it contains no failure."""
    if not line.startswith(_PREFIX):
        return None
    with suppress(DataError):  # a killed process left half a line
        return from_json(Failure, parse_json_object(line.removeprefix(_PREFIX)))
    return None


def root_cause(failures: Sequence[Failure]) -> Failure:
    """Return the failure to report to the user.

    It is a failure that would recur after a restart. Without one, it is the earliest cause in the last attempt.
    """
    last = max(failure.attempt for failure in failures)
    candidates = [failure for failure in failures if failure.kind is FailureKind.FINAL] or [
        failure for failure in failures if failure.attempt == last
    ]
    cause = min(candidates, key=lambda failure: (failure.kind is FailureKind.CONSEQUENCE, failure.time))
    if cause.kind is FailureKind.CAUSE and cause.where is None:
        places = [failure.where for failure in candidates if failure.where]
        cause = replace(cause, where=places[0] if places else None)
    return cause


def rank_name(rank: int) -> str:
    node = os.environ.get(NODE)
    return f"rank {rank} on {node}" if node else f"rank {rank}"


@contextmanager
def note_position(where: str) -> Iterator[None]:
    """Add `where`, the position in the run, as a note to an exception that this block raises."""
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


def describe(error: Exception, rank: int) -> Failure:
    now = time.time()
    if isinstance(error, LostError):
        return Failure(kind=FailureKind.CONSEQUENCE, time=now, what=error.what, where=error.where, then=error.then)
    if isinstance(error, RankError):
        return Failure(kind=FailureKind.FINAL, time=now, what=f"{rank_name(rank)}: {error}")
    if isinstance(error, (TrainingError, DataError)):
        return Failure(kind=FailureKind.FINAL, time=now, what=str(error))
    where = next(iter(getattr(error, "__notes__", ())), None)
    if isinstance(error, MemoryError):
        then = "; restart with --resume, and with fewer ranks per machine"
        what = "ran out of memory"
    else:
        lines = str(error).splitlines()
        what = f"failed with {type(error).__name__}" + (f" ({lines[0]})" if lines else "")
        then = ", which Shoal does not expect; restart with --resume, and report the error if it recurs"
    return Failure(kind=FailureKind.CAUSE, time=now, what=f"{rank_name(rank)} {what}", where=where, then=then)


def write_failure(failure: Failure, rank: int) -> None:
    folder = os.environ.get(FOLDER)
    if folder:
        with suppress(OSError):  # the log contains the message in any case
            (Path(folder) / f"{rank}{_SUFFIX}").write_text(failure.line(), "utf-8")


def read_failures(folder: Path) -> dict[int, Failure]:
    by_rank = {int(path.name.removesuffix(_SUFFIX)): parse(read_tail(path)) for path in folder.glob(f"*{_SUFFIX}")}
    return {rank: failure for rank, failure in by_rank.items() if failure}


def mark_started() -> None:
    """Record for the launcher that training steps have started: only later failures justify a restart."""
    folder = os.environ.get(FOLDER)
    if folder:
        with suppress(OSError):
            (Path(folder) / _STARTED).touch()


def has_started(folder: Path) -> bool:
    """Return whether a rank that writes its failures to `folder` has started its training steps."""
    return (folder / _STARTED).exists()


@contextmanager
def mark_rendezvous() -> Iterator[None]:
    """Create the file that MEETING names, and delete it after this block.

    While the file exists, this launcher waits for the launchers of other machines.
    """
    path = os.environ.get(MEETING)
    if path:
        Path(path).touch()
    try:
        yield
    finally:
        if path:
            Path(path).unlink(missing_ok=True)


def previous_failure() -> Failure | None:
    """Return the failure that caused this restart; None on a first start."""
    return parse(os.environ.get(LOST, ""))
