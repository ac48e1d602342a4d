"""How far the job of a step on EMR is, by what its client prints on standard error, which EMR copies minutes late.

Hadoop's client prints the number of map tasks once, and then the shares of the maps and of the reduces that are done.
Spark's is the driver, and prints the port of its REST API ("REST API" in Spark's documentation of monitoring); with
YARN it sends whoever asks to YARN's proxy. What a failed task of MapReduce wrote is in YARN's logs alone.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from http.client import HTTPException
from itertools import pairwise
from threading import Timer
from typing import Annotated, Any
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

from bootstrap.agent.documents import MOST_ERROR, WORK, Count, LaunchDocument, Sentence, require
from common.errors import DataError
from common.json_values import long

_MOST_READ = 1 << 20
_LAST_LINES, _TASK_LINES = 4, 6
_TASK_FAILED = re.compile(r"Task Id : (attempt_[0-9]{1,20}_[0-9]{1,10}_[mr]_[0-9]{1,10}_[0-9]{1,10}), Status : FAILED")
_DRIVER = re.compile(r"Successfully started service 'SparkUI' on port ([0-9]{1,5})\.")
_SPLITS = re.compile(r"number of splits:([0-9]{1,9})\b")
_SHARES = re.compile(r"\bmap ([0-9]{1,3})% reduce ([0-9]{1,3})%")
_NAME, _REDUCES = "mapreduce.job.name=", "mapreduce.job.reduces="
_MOST_NAME, _MOST_WRITTEN = 200, 4000
_DRIVER_SECONDS, _MOST_OF_DRIVER = 2.0, 8 << 20
_LOG_SECONDS, _PAUSE_SECONDS = 60.0, 3.0
"""How long it looks for the log: YARN collects the logs of a job when that has ended."""
_LOG_LINES, _MOST_OF_LINE = 12, 4096


def progress_key(run: str) -> str:
    """The key of what the step of a run that runs has told."""
    return f"{WORK}{run}/progress.json"


@dataclass(frozen=True, kw_only=True)
class JobProgress(LaunchDocument):
    """How far a job is."""

    name: Annotated[str, long(0, _MOST_NAME)]
    """Of the step; empty for a step of one process."""
    total: Count | None = None
    """How many tasks it has, as far as that is known; None before that."""
    done: Count = 0
    """How many of them are done."""
    failed: Sentence = ""
    """What its client has printed of the task that failed last, and its last lines, where it has failed."""
    written: Annotated[str, long(0, _MOST_WRITTEN)] = ""
    """The last lines that this task wrote to its standard error."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.done <= (self.total or 0), "more tasks are done than there are")


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
        if self._driver and (counted := driver_tasks(self._driver)):
            with suppress(DataError):
                self.progress = replace(self.progress, done=counted[0], total=counted[1])

    def ask_task(self) -> None:
        """Take from YARN what the task that failed last wrote."""
        if self._failed:
            self.progress = replace(self.progress, written=last_lines(self._failed)[-_MOST_WRITTEN:])

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


def driver_tasks(port: int) -> tuple[int, int] | None:
    """How many tasks of a driver's stages so far are done, and how many there are; None while it does not tell."""
    applications = f"http://localhost:{port}/api/v1/applications"
    try:
        (application,) = _asked(applications)
        stages = _asked(f"{applications}/{quote(application['id'], safe='')}/stages")
        counts = [_counts(each) for each in stages]
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return None  # also while it starts: then it answers in words
    return sum(done for done, _ in counts), sum(total for _, total in counts)


def _asked(address: str) -> Any:
    with build_opener(ProxyHandler({})).open(address, timeout=_DRIVER_SECONDS) as answer:
        return json.loads(answer.read(_MOST_OF_DRIVER))


def _counts(stage: dict[str, Any]) -> tuple[int, int]:
    """The tasks of an attempt of a stage: those that are done, and all. One that failed has another attempt for the
    rest, and one that is skipped has its output from an earlier job."""
    total, done = int(stage["numTasks"]), int(stage["numCompleteTasks"])
    if stage["status"] in ("FAILED", "SKIPPED"):
        return done, done
    return min(done, total), total


def last_lines(attempt: str) -> str:
    """The last lines that an attempt of a task of an ended job wrote to its standard error; empty where YARN does not
    have them in time."""
    deadline = time.monotonic() + _LOG_SECONDS
    job = "_".join(["job", *attempt.split("_")[1:3]])
    while (left := deadline - time.monotonic()) > 0:
        try:
            lines = _printed(["mapred", "job", "-logs", job, attempt], left)
        except OSError:
            break
        if lines is not None:
            return "\n".join(lines)
        time.sleep(_PAUSE_SECONDS)
    return ""


def _printed(command: list[str], seconds: float) -> list[str] | None:
    """The last lines of the standard error that this command prints; None where it does not print all of it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
        printed = client.stdout
        assert printed is not None
        timer = Timer(seconds, client.kill)
        timer.start()
        try:
            return _standard_error(iter(lambda: printed.readline(_MOST_OF_LINE), b""))
        finally:
            timer.cancel()
            client.kill()


def _standard_error(printed: Iterator[bytes]) -> list[str] | None:
    """By the form that Hadoop gives the logs of a container, one after the other."""
    last: deque[str] = deque(maxlen=_LOG_LINES)
    kind, inside = "", False
    for raw in printed:
        line = raw.decode("utf-8", "replace").rstrip()
        if line == "End of LogType:stderr":
            return list(last)
        if inside and kind == "stderr":
            last.extend([line] if line else [])
        elif line.startswith("LogType:"):
            kind, inside = line.partition(":")[2], False
        elif line == "LogContents:":
            inside = True
    return None
