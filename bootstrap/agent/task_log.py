"""What an attempt of a task of MapReduce wrote to its standard error, which is neither in the output of its job's
client nor in the log of the step."""

import subprocess
import time
from collections import deque
from collections.abc import Iterator
from threading import Timer

_SECONDS, _PAUSE_SECONDS = 60.0, 3.0
"""How long it looks for the log: YARN collects the logs of a job when that has ended."""
_LAST_LINES, _MOST_BYTES = 12, 4096
"""Of lines, and of each line."""


def last_lines(attempt: str) -> str:
    """The last lines that an attempt of a job that has ended wrote; empty where YARN does not have them in time."""
    deadline = time.monotonic() + _SECONDS
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
            return _standard_error(iter(lambda: printed.readline(_MOST_BYTES), b""))
        finally:
            timer.cancel()
            client.kill()


def _standard_error(printed: Iterator[bytes]) -> list[str] | None:
    """By the form that Hadoop gives the logs of a container, one after the other."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
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
