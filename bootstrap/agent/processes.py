"""Programs that outlive the agent that starts them. A restarted agent finds, stops and restarts them.

Each is the child of a process of its own, `python -m bootstrap.agent.processes FOLDER PROGRAM...`, which writes the
program's exit status to the folder.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from common.starter import ends_with_this_process
from corpus.reading.storage import write_text

State = int | Literal["running", "lost"] | None
"""Exit status, as in `subprocess`; "lost" if it is unknown, as after a reboot; None for a program that was never
started."""

MAX_RESTARTS = 3
"""Maximum number of consecutive restarts without progress."""
_START_SECONDS = 30.0
_IDENTITY, _EXIT = "process", "exit"
"""Names of the files in the folder: the process that runs the program, and the program's exit status."""
_SCOPE = ("systemd-run", "--scope", "--quiet", "--collect")
"""Prefix that gives a program a scope of its own.

Without one, systemd would end the agent's service if one of its processes is killed for memory. Scopes of Amazon Linux
2023 (systemd 252) continue in that case; with systemd 253 and later, the scope ends.
"""


class Processes:
    """Programs of this machine by name, with their folders below `root`."""

    def __init__(self, root: Path, python: str = sys.executable, *, scoped: bool = True) -> None:
        """`scoped` gives each program a systemd scope of its own, if systemd is running."""
        self._root, self._python, self._scoped = root, python, scoped

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start a Python program and append its output to `log`. `program` holds the arguments of the interpreter."""
        folder = self._root / name
        folder.mkdir(parents=True)
        scope = _scope() if self._scoped else ()
        parent = (self._python, "-P", "-m", "bootstrap.agent.processes", str(folder))
        with log.open("ab") as output:
            subprocess.Popen(
                [*scope, *parent, self._python, "-P", *program],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def state(self, name: str) -> State:
        """Return the state of a program: running, exit status, lost, or never started."""
        folder = self._root / name
        if not folder.exists():
            return None
        if (status := self._exit(folder)) is not None:
            return status
        if self._process(folder) is not None or self._is_starting(folder):
            return "running"
        return "lost" if (status := self._exit(folder)) is None else status  # it may just have ended

    def stop(self, name: str, *, kill: bool = False) -> bool:
        """Send a program SIGTERM, or with `kill` SIGKILL to its process group. Return whether a signal was sent.

        A program that is still starting cannot receive signals yet.
        """
        folder = self._root / name
        if (process := self._process(folder)) is None or self._exit(folder) is not None:
            return False
        with suppress(ProcessLookupError, PermissionError):
            if kill:
                os.killpg(process, signal.SIGKILL)
            else:
                os.kill(process, signal.SIGTERM)
            return True
        return False

    def names(self) -> list[str]:
        """Return the names of all programs that were ever started."""
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.glob("*/*") if path.is_dir())

    def forget(self, name: str) -> None:
        """Remove the state of a program, as if it was never started. It must have ended."""
        shutil.rmtree(self._root / name, ignore_errors=True)

    def _exit(self, folder: Path) -> int | None:
        with suppress(OSError, ValueError):
            return int((folder / _EXIT).read_text("utf-8"))
        return None

    def _is_starting(self, folder: Path) -> bool:
        """Return whether the program was started so recently that its process may not have written its identity."""
        if (folder / _IDENTITY).exists():
            return False
        return time.time() - folder.stat().st_mtime < _START_SECONDS

    def _process(self, folder: Path) -> int | None:
        """Return the id of the process that runs the program, or None if it has ended."""
        with suppress(OSError, ValueError):
            identity = (folder / _IDENTITY).read_text("utf-8")
            process = int(identity.split()[0])
            if _identity_of(process) == identity:
                return process
        return None


class Restarts:
    """Limit of restarts for a program that dies without progress: one that always fails at start is not worth
    restarting."""

    def __init__(self) -> None:
        self._deaths, self._progress = 0, -1

    def may_restart(self, progress: int) -> bool:
        """Record a death and return whether to restart. `progress` is the total progress so far."""
        self._deaths = 1 if progress > self._progress else self._deaths + 1
        self._progress = progress
        return not self.exhausted

    @property
    def exhausted(self) -> bool:
        return self._deaths > MAX_RESTARTS


def _scope() -> Sequence[str]:
    """Return the command prefix for a scope, or an empty sequence if systemd does not manage this machine."""
    return (*_SCOPE, "--") if os.environ.get("NODE_ROOT") or Path("/run/systemd/system").is_dir() else ()


def _identity_of(process: int) -> str | None:
    """Return a process's id and start time, unique until a reboot, or None if the process does not exist."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else f"{process} {fields[18]}"


def main() -> int:
    folder, program = Path(sys.argv[1]), sys.argv[2:]
    write_text(str(folder / _IDENTITY), str(_identity_of(os.getpid())))
    _on_stop(lambda *_: None)  # before there is a program; SIG_IGN would be inherited
    status = 127
    try:
        running = subprocess.Popen(program, env={**os.environ, **ends_with_this_process()})

        def pass_on(number: int, _: object) -> None:
            _on_stop(lambda *_: None)  # a second signal would make ranks stop without a checkpoint
            running.send_signal(number)

        _on_stop(pass_on)
        status = running.wait()
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
    write_text(str(folder / _EXIT), str(status))
    return 0


def _on_stop(handler: Callable[[int, Any], object]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
