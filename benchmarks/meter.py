"""Measures the cost of a command: CPU time of its whole process tree, wall time, and peak memory. Linux only.

A process between the measuring process and the command adopts orphans of the command (such as Spark's JVM), and waits
for all of them. So the kernel's account of children is the exact CPU time. Memory is sampled five times a second.

Do not read peak memory (`ru_maxrss`) in a large parent, because a child starts with its parent's peak. This is another
reason for the separate process.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

OUT_OF_MEMORY = "out of memory"
OUT_OF_TIME = "out of time"

_INTERVAL_S = 0.2
_GRACE_S = 5.0
_SET_CHILD_SUBREAPER = 36
_SET_PARENT_DEATH_SIGNAL = 1
_MEMORY_SIGNS = ("MemoryError", "OutOfMemoryError", "Cannot allocate memory", "memory allocation of", "std::bad_alloc")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Cost of one command. Times are in seconds, memory in bytes."""

    wall: float
    cpu: float
    peak_process: int
    """Peak resident memory of the largest process, by the kernel's account."""
    peak_tree: int
    """Peak proportional memory of all processes (PSS: shared pages count once), as sampled."""
    failed: str | None
    """Short reason why the command failed; None if it succeeded."""


def metered(command: Sequence[str], log: Path, *, memory_limit: int, time_limit: float) -> Usage:
    """Run a command with its output in the file `log`, end it above the limits, and return its cost.

    Without a memory limit the kernel might kill another process.
    """
    order = json.dumps({"command": list(command), "log": str(log), "memory": memory_limit, "time": time_limit})
    process = subprocess.Popen([sys.executable, "-m", __spec__.name, order], stdout=subprocess.PIPE, text=True)
    try:
        answer, _ = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    return Usage(**json.loads(answer))


class _Watch:
    """Tree of the processes below this one."""

    def __init__(self, memory_limit: int, time_limit: float) -> None:
        self._me = psutil.Process()
        self._memory_limit = memory_limit
        self._deadline = time.monotonic() + time_limit
        self.peak_tree = 0

    def sample(self) -> str | None:
        """Sample memory, and return the exceeded limit; None if there is no such limit."""
        memory = sum(_memory(process) for process in self._me.children(recursive=True))
        self.peak_tree = max(self.peak_tree, memory)
        if memory > self._memory_limit:
            return f"{OUT_OF_MEMORY} (above {self._memory_limit / 1e9:.0f} GB)"
        return OUT_OF_TIME if time.monotonic() > self._deadline else None

    def end(self) -> None:
        """End all remaining processes, first by SIGTERM, then by SIGKILL, and wait for them."""
        for kind in (signal.SIGTERM, signal.SIGKILL):
            for process in self._me.children(recursive=True):
                _signal(process.pid, kind)
            until = time.monotonic() + _GRACE_S
            while _reap() and time.monotonic() < until:
                time.sleep(0.02)


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def _signal(pid: int, kind: signal.Signals) -> None:
    try:
        os.kill(pid, kind)
    except ProcessLookupError:
        return


def _reap() -> bool:
    """Wait for ended children, and return whether any child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True


def _run(command: Sequence[str], log: Path, memory_limit: int, time_limit: float) -> Usage:
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    watch = _Watch(memory_limit, time_limit)
    start = time.monotonic()
    try:  # before the command starts, so that any end of this function also ends the command
        with log.open("wb") as output:
            main = os.posix_spawnp(
                command[0],
                list(command),
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), descriptor) for descriptor in (1, 2)],
            )
        failed, status = None, 0
        while True:
            pid, status = os.waitpid(main, os.WNOHANG)
            if pid:
                break
            if failed := watch.sample():
                break
            time.sleep(_INTERVAL_S)
        wall = time.monotonic() - start
    finally:
        watch.end()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(
        wall=wall,
        cpu=used.ru_utime + used.ru_stime,
        peak_process=used.ru_maxrss * 1024,
        peak_tree=watch.peak_tree,
        failed=failed or _failure(os.waitstatus_to_exitcode(status), log),
    )


def _failure(code: int, log: Path) -> str | None:
    if code == 0:
        return None
    said = log.read_text("utf-8", "replace")
    if code == -signal.SIGKILL or any(sign in said for sign in _MEMORY_SIGNS):
        return OUT_OF_MEMORY
    last = said.strip().splitlines()[-1:] or ["it printed nothing"]
    return f"exit {code}: {last[0][:120]}"


def _stopped(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command that the first argument describes, and print its usage as JSON."""
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, _stopped)
    order = json.loads(sys.argv[1])
    try:
        usage = _run(order["command"], Path(order["log"]), order["memory"], order["time"])
    except KeyboardInterrupt:
        sys.exit(130)
    sys.stdout.write(json.dumps(asdict(usage)))


if __name__ == "__main__":
    main()
