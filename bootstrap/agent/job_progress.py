"""How far the job of a step on EMR is, by what its client prints on standard error, which EMR copies minutes late.

Hadoop's client prints the number of map tasks once, and then the shares of the maps and of the reduces that are done.
"""

import os
import re
import sys
from dataclasses import dataclass, replace

from bootstrap.agent.documents import MOST_COUNTED, MOST_ERROR, TOKEN, WORK, FlatDocument, require
from common.display import printable

_MOST_READ = 1 << 20
_LAST_LINES, _TASK_LINES = 4, 6
_TASK_FAILED = "Status : FAILED"
_SPLITS = re.compile(r"number of splits:([0-9]{1,9})\b")
_SHARES = re.compile(r"\bmap ([0-9]{1,3})% reduce ([0-9]{1,3})%")
_NAME, _REDUCES = "mapreduce.job.name=", "mapreduce.job.reduces="
_MOST_NAME = 200


def progress_key(run: str) -> str:
    """The key of what the step of a run that runs has told."""
    return f"{WORK}{run}/progress.json"


@dataclass(frozen=True, kw_only=True)
class JobProgress(FlatDocument):
    """How far a job is. Raises DataError for values that cannot be."""

    token: str
    """Of the launch."""
    name: str
    """Of the step; empty for a step of one process."""
    maps: int | None = None
    """How many map tasks it has; None before that is known."""
    reduces: int = 0
    map_percent: int = 0
    reduce_percent: int = 0
    failed: str = ""
    """What its client has printed of the task that failed last, and its last lines, where it has failed."""

    def __post_init__(self) -> None:
        require(TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        require(len(self.name) <= _MOST_NAME, "its name is too long")
        require(all(0 <= each < MOST_COUNTED for each in (self.maps or 0, self.reduces)), "a count cannot be")
        shares = (self.map_percent, self.reduce_percent)
        require(all(0 <= each <= 100 for each in shares), "a share cannot be")
        require(len(self.failed) <= MOST_ERROR, "its last lines are too long")

    @property
    def total(self) -> int | None:
        """How many tasks the job has; None before that is known."""
        return None if self.maps is None else self.maps + self.reduces

    @property
    def done(self) -> int:
        """How many tasks are done, by the shares that Hadoop tells."""
        return ((self.maps or 0) * self.map_percent + self.reduces * self.reduce_percent) // 100


class ClientOutput:
    """What the client of a job prints into a file, passed on to this process's standard error."""

    def __init__(self, file: int, token: str, command: list[str]) -> None:
        """`file`: the descriptor of the file."""
        name, reduces = (_value(command, each) for each in (_NAME, _REDUCES))
        self.progress = JobProgress(
            token=token, name=name[:_MOST_NAME], reduces=int(reduces) if reduces.isdecimal() else 0
        )
        self._file, self._offset, self._rest = file, 0, b""
        self._last: list[str] = []
        self._task: list[str] | None = None
        """The lines of the task that failed last."""

    def pass_on(self) -> None:
        """Pass on what was added, and take from it how far the job is."""
        while more := os.pread(self._file, _MOST_READ, self._offset):
            self._offset += len(more)
            sys.stderr.buffer.write(more)
            sys.stderr.buffer.flush()
            whole, newline, self._rest = (self._rest + more).rpartition(b"\n")
            self._rest = self._rest[-_MOST_READ:]
            for line in (whole + newline).decode("utf-8", "replace").splitlines():
                self._take(line)

    def end(self, code: int) -> None:
        """Note how the client has ended."""
        self.pass_on()
        if code:
            rest = [self._rest.decode("utf-8", "replace")] if self._rest else []
            told = [*self._last, *map(printable, rest)]
            task = [line for line in self._task or () if line not in told]
            self.progress = replace(self.progress, failed="\n".join([*task, *told])[-MOST_ERROR:])

    def _take(self, line: str) -> None:
        if line.strip():
            self._last = [*self._last, printable(line)][-_LAST_LINES:]
            if _TASK_FAILED in line:
                self._task = []
            if self._task is not None and len(self._task) < _TASK_LINES:
                self._task.append(printable(line))
        if found := _SPLITS.search(line):
            self.progress = replace(self.progress, maps=int(found[1]))
        elif found := _SHARES.search(line):
            maps, reduces = (min(100, int(each)) for each in found.groups())
            self.progress = replace(self.progress, map_percent=maps, reduce_percent=reduces)


def _value(command: list[str], name: str) -> str:
    return next((word.removeprefix(name) for word in command if word.startswith(name)), "")
