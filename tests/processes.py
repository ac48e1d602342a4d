"""Finds the processes that a command started or left behind, by a mark in their environment."""

from contextlib import suppress
from pathlib import Path

import psutil

from tests.waiting import until

MARK = "TMPDIR"
"""Variable that every process inherits. All temporary files are below the folder that it names."""


def marked(mark: str) -> list[str]:
    """Return the command lines of processes with the mark, a unique path, in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended, or is a zombie
    return found


def left_behind(mark: str, patience: float = 60) -> list[str]:
    """Return the marked processes that still exist after some seconds."""
    with suppress(AssertionError):
        until(lambda: not marked(mark), patience, every=0.2)
    return marked(mark)


def rank_processes(rank: int, nodes: Path | None = None) -> list[psutil.Process]:
    """Return the processes of a training's rank, below this process or on nodes with folders below the given one."""
    found = []
    for child in psutil.Process().children(recursive=True) if nodes is None else psutil.process_iter():
        try:
            environment = child.environ()
            ours = nodes is None or environment.get("NODE_ROOT", "").startswith(f"{nodes}/")
            if ours and environment.get("RANK") == str(rank):
                found.append(child)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it has ended
    return found
