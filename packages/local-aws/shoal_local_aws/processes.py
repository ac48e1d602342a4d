"""Kills emulated processes with all their descendants.

A process group does not contain all descendants, because torchrun starts each worker in a new session. After its agent
has been killed, a worker has no parent either. But all descendants inherit the environment variables. So an environment
variable marks each process: with the folder of its node, the id of its command, or the folder of its emulator. All
processes with the same mark are killed.
"""

import os
import signal
import time
from contextlib import suppress

import psutil

PATIENCE = 300.0
"""Time limit in seconds for the start or the exit of a process. It is long enough for a busy machine."""


def marked_processes(name: str, value: str) -> list[int]:
    """Return the ids of all processes that have `name=value` in their environment, without this process."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # the process has exited, or belongs to a different user
            if process.pid != os.getpid() and process.environ().get(name) == value:
                found.append(process.pid)
    return found


def kill_marked(name: str, value: str) -> None:
    """Kill all processes that have `name=value` in their environment.

    Repeat this until no such process is left, because these processes may start more processes. Raises TimeoutError if
    processes are left after `PATIENCE` seconds.
    """
    until = time.monotonic() + PATIENCE
    while ids := marked_processes(name, value):
        for process in ids:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > until:
            raise TimeoutError(f"processes {ids} with {name}={value} do not exit")
        time.sleep(0.01)
