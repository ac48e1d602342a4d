"""Ends emulated processes with all their descendants.

A process group does not contain all descendants: torchrun starts every worker in a new session, and a worker has no
parent after its agent died. But all descendants inherit the environment. So an environment variable marks a process
(its node's folder, its command's id, or its emulator's folder), and all processes with the mark are ended.
"""

import os
import signal
import time
from contextlib import suppress

import psutil

PATIENCE = 300.0
"""Time limit in seconds for a start or an end, long enough for a busy machine."""


def marked_processes(name: str, value: str) -> list[int]:
    """Return the ids of all processes with `name=value` in their environment, except this process."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # the process has ended, or belongs to another user
            if process.pid != os.getpid() and process.environ().get(name) == value:
                found.append(process.pid)
    return found


def kill_marked(name: str, value: str) -> None:
    """Kill all processes with `name=value`. Repeat this until no process is left, because they may start others.

    Raises TimeoutError if some are left after `PATIENCE` seconds.
    """
    until = time.monotonic() + PATIENCE
    while ids := marked_processes(name, value):
        for process in ids:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > until:
            raise TimeoutError(f"processes {ids} with {name}={value} do not end")
        time.sleep(0.01)
