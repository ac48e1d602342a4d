"""Ends emulated processes with all their descendants.

A process group does not contain them all: torchrun gives every worker a session of its own, and a worker whose agent
died has no parent. But all descendants keep their environment. So an emulated process is marked by a variable (its
node's folder, its command's id, its emulator's folder), and all processes with the mark are ended.
"""

import os
import signal
import time
from contextlib import suppress

import psutil

PATIENCE = 300.0
"""Seconds in which anything starts or ends, however busy the machine is."""


def marked_processes(name: str, value: str) -> list[int]:
    """Ids of the processes that were started with `name=value` in their environment, except this process."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or is another user's
            if process.pid != os.getpid() and process.environ().get(name) == value:
                found.append(process.pid)
    return found


def kill_marked(name: str, value: str) -> None:
    """Kill all processes with `name=value`, repeatedly until none is left, because they may start others.

    Raises TimeoutError when some are left after `PATIENCE` seconds.
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
