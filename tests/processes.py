"""Which processes a command started or left behind, wherever they went: they still carry a mark of its environment."""

from contextlib import suppress
from pathlib import Path

import psutil

from tests.waiting import until

MARK = "TMPDIR"
"""A variable that every process passes on, and below whose folder everything temporary lies."""


def marked(mark: str) -> list[str]:
    """The command lines of the processes that have the mark, a unique path, in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended meanwhile, or is a zombie
    return found


def left_behind(mark: str, patience: float = 60) -> list[str]:
    """The marked processes that are still there after some seconds."""
    with suppress(AssertionError):
        until(lambda: not marked(mark), patience, every=0.2)
    return marked(mark)


def rank_processes(rank: int, nodes: Path | None = None) -> list[psutil.Process]:
    """The processes below this one that are this rank of a training, or those on nodes whose folders are below that."""
    found = []
    for child in psutil.Process().children(recursive=True) if nodes is None else psutil.process_iter():
        try:
            environment = child.environ()
            ours = nodes is None or environment.get("NODE_ROOT", "").startswith(f"{nodes}/")
            if ours and environment.get("RANK") == str(rank):
                found.append(child)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended meanwhile
    return found
