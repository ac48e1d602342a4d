"""Programs that outlive the agent that starts them. A restarted agent can find, stop and restart them.

Each program has its own parent process, `python -m bootstrap.node.processes FOLDER PROGRAM...`. The parent process
writes the program's exit status to the folder.
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
"""State of a program: "running"; its exit status, as in `subprocess`; "lost" if the exit status is unknown, for example
after a reboot; None if the program was never started."""

MAX_RESTARTS = 3
"""Maximum number of consecutive restarts without progress."""
_START_SECONDS = 30.0
_IDENTITY, _EXIT = "process", "exit"
"""Names of two files in a program's folder: the identity of its parent process, and the program's exit status."""
_SCOPE = ("systemd-run", "--scope", "--quiet", "--collect")
"""Command prefix that starts a program in its own systemd scope.

Without its own scope, a program that the kernel kills for lack of memory would make systemd stop the agent's service.
On Amazon Linux 2023 (systemd 252), the other processes of the scope continue. With systemd 253 and later, systemd stops
the scope.
"""


class Processes:
    """Programs of this machine. The name of a program is the path of its folder below `root`."""

    def __init__(self, root: Path, *, scoped: bool = True) -> None:
        """If `scoped` is true and systemd is running, each program runs in its own systemd scope."""
        self._root, self._scoped = root, scoped

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start a Python program and append its output to `log`. `program` contains the arguments of the Python
        interpreter."""
        folder = self._root / name
        folder.mkdir(parents=True)
        scope = _scope() if self._scoped else ()
        parent = (sys.executable, "-P", "-m", "bootstrap.node.processes", str(folder))
        with log.open("ab") as output:
            subprocess.Popen(
                [*scope, *parent, sys.executable, "-P", *program],
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
        return "lost" if (status := self._exit(folder)) is None else status  # it might just have exited

    def stop(self, name: str, *, kill: bool = False) -> bool:
        """Send SIGTERM to a program or, with `kill`, send SIGKILL to its process group. Return whether a signal was
        sent.

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
        """Return the names of all programs that were started and not forgotten."""
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.glob("*/*") if path.is_dir())

    def forget(self, name: str) -> None:
        """Remove the state of a program that has exited, as if the program was never started."""
        shutil.rmtree(self._root / name, ignore_errors=True)

    def _exit(self, folder: Path) -> int | None:
        with suppress(OSError, ValueError):
            return int((folder / _EXIT).read_text("utf-8"))
        return None

    def _is_starting(self, folder: Path) -> bool:
        """Return whether the program was started so recently that its parent process might not have written the
        program's identity yet."""
        if (folder / _IDENTITY).exists():
            return False
        return time.time() - folder.stat().st_mtime < _START_SECONDS

    def _process(self, folder: Path) -> int | None:
        """Return the id of the program's parent process, or None if that process has exited."""
        with suppress(OSError, ValueError):
            identity = (folder / _IDENTITY).read_text("utf-8")
            process = int(identity.split()[0])
            if _identity_of(process) == identity:
                return process
        return None


class Restarts:
    """Limit of restarts for a program that repeatedly dies without progress."""

    def __init__(self) -> None:
        self._deaths, self._progress = 0, -1

    def may_restart(self, progress: int) -> bool:
        """Record a death of the program, and return whether to restart it. `progress` is the program's total progress
        so far."""
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
    """Return a process's id and start time, or None if the process does not exist. The pair is unique until a
    reboot."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else f"{process} {fields[18]}"


def main() -> int:
    folder, program = Path(sys.argv[1]), sys.argv[2:]
    write_text(str(folder / _IDENTITY), str(_identity_of(os.getpid())))
    _on_stop(lambda *_: None)  # until the program runs; not SIG_IGN, which it would inherit
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
