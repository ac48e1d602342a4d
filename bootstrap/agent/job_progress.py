"""How far the job of a step on EMR is, by what its client prints on standard error, which EMR copies minutes late.

Hadoop's client prints the number of map tasks once, and then the shares of the maps and of the reduces that are done.
Spark's is the driver, and prints the port at which it tells that.
"""

import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from bootstrap.agent import spark_driver, task_log
from bootstrap.agent.documents import MOST_COUNTED, MOST_ERROR, TOKEN, WORK, JsonDocument, require
from common.errors import DataError

_MOST_READ = 1 << 20
_LAST_LINES, _TASK_LINES = 4, 6
_TASK_FAILED = re.compile(r"Task Id : (attempt_[0-9]{1,20}_[0-9]{1,10}_[mr]_[0-9]{1,10}_[0-9]{1,10}), Status : FAILED")
_DRIVER = re.compile(r"Successfully started service 'SparkUI' on port ([0-9]{1,5})\.")
_SPLITS = re.compile(r"number of splits:([0-9]{1,9})\b")
_SHARES = re.compile(r"\bmap ([0-9]{1,3})% reduce ([0-9]{1,3})%")
_NAME, _REDUCES = "mapreduce.job.name=", "mapreduce.job.reduces="
_MOST_NAME, _MOST_WRITTEN = 200, 4000


def progress_key(run: str) -> str:
    """The key of what the step of a run that runs has told."""
    return f"{WORK}{run}/progress.json"


@dataclass(frozen=True, kw_only=True)
class JobProgress(JsonDocument):
    """How far a job is. Raises DataError for values that cannot be."""

    token: str
    """Of the launch."""
    name: str
    """Of the step; empty for a step of one process."""
    total: int | None = None
    """How many tasks it has, as far as that is known; None before that."""
    done: int = 0
    """How many of them are done."""
    failed: str = ""
    """What its client has printed of the task that failed last, and its last lines, where it has failed."""
    written: str = ""
    """The last lines that this task wrote to its standard error."""

    def __post_init__(self) -> None:
        require(TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        require(len(self.name) <= _MOST_NAME, "its name is too long")
        require(0 <= self.done <= (self.total or 0) < MOST_COUNTED, "a count cannot be")
        require(len(self.failed) <= MOST_ERROR and len(self.written) <= _MOST_WRITTEN, "its last lines are too long")


class ClientOutput:
    """What the client of a job prints into a file, passed on to this process's standard error."""

    def __init__(self, file: int, token: str, command: list[str]) -> None:
        """`file`: the descriptor of the file."""
        name = _value(command, _NAME) or next((after for before, after in pairwise(command) if before == "--name"), "")
        self.progress = JobProgress(token=token, name=name[:_MOST_NAME])
        reduces = _value(command, _REDUCES)
        self._maps, self._reduces = 0, int(reduces) if reduces.isdecimal() else 0
        self._driver: int | None = None
        self._failed = ""
        """The attempt of a task that failed last."""
        self._file, self._offset, self._rest = file, 0, b""
        self._last: list[str] = []
        self._task: list[str] | None = None
        """What is printed of it."""

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

    def ask_driver(self) -> None:
        """Take from the driver, where it is Spark's and answers, how far the job is."""
        if self._driver and (counted := spark_driver.tasks(self._driver)):
            with suppress(DataError):
                self.progress = replace(self.progress, done=counted[0], total=counted[1])

    def ask_task(self) -> None:
        """Take from YARN what the task that failed last wrote."""
        if self._failed:
            self.progress = replace(self.progress, written=task_log.last_lines(self._failed)[-_MOST_WRITTEN:])

    def end(self, code: int) -> None:
        self.pass_on()
        if code:
            rest = [self._rest.decode("utf-8", "replace")] if self._rest else []
            told = [*self._last, *rest]
            task = [line for line in self._task or () if line not in told]
            self.progress = replace(self.progress, failed="\n".join([*task, *told])[-MOST_ERROR:])

    def _take(self, line: str) -> None:
        if line.strip():
            self._last = [*self._last, line][-_LAST_LINES:]
            if failed := _TASK_FAILED.search(line):
                self._task, self._failed = [], failed[1]
            if self._task is not None and len(self._task) < _TASK_LINES:
                self._task.append(line)
        if found := _SPLITS.search(line):
            self._maps = int(found[1])
            self.progress = replace(self.progress, total=self._maps + self._reduces, done=0)
        elif self.progress.total and (found := _SHARES.search(line)):
            maps, reduces = (min(100, int(each)) for each in found.groups())
            self.progress = replace(self.progress, done=(self._maps * maps + self._reduces * reduces) // 100)
        elif found := _DRIVER.search(line):
            self._driver = int(found[1])


def _value(command: list[str], name: str) -> str:
    return next((word.removeprefix(name) for word in command if word.startswith(name)), "")
