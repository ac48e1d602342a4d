"""Ends emulated processes, wherever they went.

A process group is not enough to find them: torchrun gives every worker a session of its own, and a worker whose
agent died belongs to nobody. What all descendants keep is their environment, so a emulated process is marked by a
variable (its node's folder, its command's id, its emulator's folder), and ending it means ending whatever bears the
mark. Linux only, by way of `/proc`.
"""

import os
import signal
import time
from pathlib import Path

_PROCESSES = Path("/proc")


def marked_processes(name: str, value: str) -> list[int]:
    """Ids of the living processes that were started with `name=value` in their environment, this one excepted."""
    mark = b"\0" + f"{name}={value}".encode() + b"\0"
    found = []
    for entry in _PROCESSES.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        if mark in b"\0" + environment:
            found.append(int(entry.name))
    return found


def kill_marked(name: str, value: str, *, deadline: float = 10.0) -> None:
    """Kill every bearer of `name=value`; again until none is left, for they may be starting others.

    Raises TimeoutError when some survive for `deadline` seconds.
    """
    until = time.monotonic() + deadline
    while ids := marked_processes(name, value):
        for process in ids:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > until:
            raise TimeoutError(f"processes {ids} with {name}={value} do not end")
        time.sleep(0.01)
