"""What ended a rank: told so that whoever started the ranks can say what came first, and whether to start them again.

A rank that fails writes a file for its launcher (launch.py), which tells failures of all its ranks in its own output.
The easy mistake is to go by the order of output: ranks that lost a peer are often heard before it, or instead of it.
So a failure knows whether it is a cause or what follows from one, and when it was.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from corpus.errors import DataError
from trainer.errors import LostError, RankError, TrainingError

NODE = "SHOAL_NODE"
"""The environment variable with the name that users know this machine by; unset where there is only one."""
LOST = "SHOAL_LOST"
"""The environment variable of ranks that are started again: the failure of those before them."""
FOLDER = "SHOAL_FAULTS"
"""The environment variable with the folder in which ranks leave what their launcher is to know."""

_PREFIX = "failed: "
_BEGUN, _SUFFIX = "begun", ".failed"


class FailureKind(StrEnum):
    """What a failure is to the run."""

    FINAL = "final"
    """It would come again."""
    CAUSE = "cause"
    """It ended the run, and might not come again."""
    CONSEQUENCE = "consequence"
    """It came of a failure elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The end of a rank, or of all ranks of a machine."""

    kind: FailureKind
    time: float
    """Seconds since 1970."""
    what: str
    where: str | None = None
    """How far the run was, such as `at step 5`."""
    then: str = ""
    """The rest of the sentence: details, and a way out."""
    attempt: int = 0
    """How often the ranks had been started again."""

    @property
    def short(self) -> str:
        """What happened where."""
        return f"{self.what} {self.where}" if self.where else self.what

    def __str__(self) -> str:
        return self.short + self.then

    def line(self) -> str:
        """One line that `parse` reads."""
        return _PREFIX + json.dumps(asdict(self))


def parse(line: str) -> Failure | None:
    """The failure that a line tells; None for any other text."""
    if not line.startswith(_PREFIX):
        return None
    with suppress(TypeError, KeyError, ValueError):  # half a line, of a process that was killed
        fields = json.loads(line.removeprefix(_PREFIX))
        return Failure(**{**fields, "kind": FailureKind(fields["kind"])})
    return None


def root_cause(failures: Sequence[Failure]) -> Failure:
    """The one to be told of those of a run: what would come again; else the earliest cause of the last attempt."""
    last = max(failure.attempt for failure in failures)
    candidates = [failure for failure in failures if failure.kind is FailureKind.FINAL] or [
        failure for failure in failures if failure.attempt == last
    ]
    found = min(candidates, key=lambda failure: (failure.kind is FailureKind.CONSEQUENCE, failure.time))
    if found.kind is FailureKind.CAUSE and found.where is None:
        places = [failure.where for failure in candidates if failure.where]
        found = replace(found, where=places[0] if places else None)
    return found


def rank_name(rank: int) -> str:
    """A rank of this machine, as its user knows it."""
    node = os.environ.get(NODE)
    return f"rank {rank} on {node}" if node else f"rank {rank}"


@contextmanager
def note_position(where: str) -> Iterator[None]:
    """Let an error of this block know how far the run was."""
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


def describe(error: Exception, rank: int) -> Failure:
    """The failure that an error is which ends a rank."""
    now = time.time()
    if isinstance(error, LostError):
        return Failure(kind=FailureKind.CONSEQUENCE, time=now, what=error.what, where=error.where, then=error.then)
    if isinstance(error, RankError):
        return Failure(kind=FailureKind.FINAL, time=now, what=f"{rank_name(rank)}: {error}")
    if isinstance(error, (TrainingError, DataError)):
        return Failure(kind=FailureKind.FINAL, time=now, what=str(error))
    where = next(iter(getattr(error, "__notes__", ())), None)
    if isinstance(error, MemoryError):
        what, then = "ran out of memory", "; start again with --resume, and with --rows-in disk or fewer ranks there"
    else:
        lines = str(error).splitlines()
        what = f"failed by {type(error).__name__}" + (f" ({lines[0]})" if lines else "")
        then = ", which Shoal does not expect; start again with --resume, and report it if it comes again"
    return Failure(kind=FailureKind.CAUSE, time=now, what=f"{rank_name(rank)} {what}", where=where, then=then)


def write_failure(failure: Failure, rank: int) -> None:
    """Leave the failure to the launcher, if there is one."""
    folder = os.environ.get(FOLDER)
    if folder:
        with suppress(OSError):  # then its sentence is in the log at least
            (Path(folder) / f"{rank}{_SUFFIX}").write_text(failure.line(), "utf-8")


def read_failures(folder: Path) -> dict[int, Failure]:
    """By rank what was left in this folder."""
    found = {
        int(path.name.removesuffix(_SUFFIX)): parse(path.read_text("utf-8")) for path in folder.glob(f"*{_SUFFIX}")
    }
    return {rank: failure for rank, failure in found.items() if failure}


def mark_begun() -> None:
    """Let the launcher know that the run has come to its steps: a failure from now on is worth another start."""
    folder = os.environ.get(FOLDER)
    if folder:
        with suppress(OSError):
            (Path(folder) / _BEGUN).touch()


def has_begun(folder: Path) -> bool:
    """Whether one of the ranks that were told of this folder has come to its steps."""
    return (folder / _BEGUN).exists()


def previous_failure() -> Failure | None:
    """Why the ranks were started again; None for those that were not."""
    return parse(os.environ.get(LOST, ""))
