"""Programs that an agent starts, finds again after its own restart, stops, and starts again when they die.

Each is the child of a process of its own, `python -m bootstrap.agent.processes FOLDER PROGRAM...`, which outlives the
agent and leaves in the folder how the program ended.
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
"""An exit status, as of `subprocess`; "lost": its end nobody saw, as when the machine was started anew; None of a
program that was never started."""

RESTARTS = 3
"""How often a process is started again that has made no progress since its last death."""
_START_SECONDS = 30.0
_IDENTITY, _EXIT = "process", "exit"
"""The files in the folder: which process runs the program, and the exit status of the program."""
_SCOPE = ("systemd-run", "--scope", "--quiet", "--collect")
"""A scope of its own: systemd would end the agent's service with a process of it that is killed for memory. Scopes of
Amazon Linux 2023 (systemd 252) continue after that; with a newer systemd (253 and later) a scope ends with it."""


class Processes:
    """The programs of this machine, by names; their folders are below `root`."""

    def __init__(self, root: Path, python: str = sys.executable, *, scoped: bool = True) -> None:
        """`scoped`: whether each has a scope of systemd's, where that runs."""
        self._root, self._python, self._scoped = root, python, scoped

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start it, as Python's arguments; its output is added to `log`."""
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
        """Whether it runs, or how it ended."""
        folder = self._root / name
        if not folder.exists():
            return None
        if (status := self._exit(folder)) is not None:
            return status
        if self._process(folder) is not None or self._is_starting(folder):
            return "running"
        return "lost" if (status := self._exit(folder)) is None else status  # it may have ended since

    def stop(self, name: str, *, kill: bool = False) -> bool:
        """Send it SIGTERM, or SIGKILL to it and its children; whether it was sent: one that only starts hears nothing
        yet."""
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
        """Those that were ever started."""
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.glob("*/*") if path.is_dir())

    def forget(self, name: str) -> None:
        """Take it as never started; it must have ended."""
        shutil.rmtree(self._root / name, ignore_errors=True)

    def _exit(self, folder: Path) -> int | None:
        with suppress(OSError, ValueError):
            return int((folder / _EXIT).read_text("utf-8"))
        return None

    def _is_starting(self, folder: Path) -> bool:
        """Whether its process may still come to leave its identity."""
        if (folder / _IDENTITY).exists():
            return False
        return time.time() - folder.stat().st_mtime < _START_SECONDS

    def _process(self, folder: Path) -> int | None:
        """The id of the process that runs it; None where that has ended."""
        with suppress(OSError, ValueError):
            identity = (folder / _IDENTITY).read_text("utf-8")
            process = int(identity.split()[0])
            if _identity_of(process) == identity:
                return process
        return None


class Restarts:
    """When a process that died is started again: not for ever, because one that fails whenever it starts does
    nothing."""

    def __init__(self) -> None:
        self._deaths, self._progress = 0, -1

    def again(self, progress: int) -> bool:
        """Whether it is started again after another death, `progress` being how far it has come in all."""
        self._deaths = 1 if progress > self._progress else self._deaths + 1
        self._progress = progress
        return not self.exhausted

    @property
    def exhausted(self) -> bool:
        return self._deaths > RESTARTS


def _scope() -> Sequence[str]:
    """What runs a program in a scope of its own; nothing where systemd does not run the services of this machine."""
    return (*_SCOPE, "--") if os.environ.get("NODE_ROOT") or Path("/run/systemd/system").is_dir() else ()


def _identity_of(process: int) -> str | None:
    """A process's id and its start, which together no later process has; None where there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else f"{process} {fields[18]}"


def main() -> int:
    folder, program = Path(sys.argv[1]), sys.argv[2:]
    write_text(str(folder / _IDENTITY), str(_identity_of(os.getpid())))
    _on_stop(lambda *_: None)  # until there is a program; it would inherit SIG_IGN
    status = 127
    try:
        running = subprocess.Popen(program, env={**os.environ, **ends_with_this_process()})

        def pass_on(number: int, _: object) -> None:
            _on_stop(lambda *_: None)  # ranks that are asked to stop a second time would stop without a checkpoint
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
