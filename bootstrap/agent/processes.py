"""Programs that an agent starts, finds again after its own restart, stops, and starts again when they die.

Each is the child of a process of its own (`child`), which leaves its exit status in a folder.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from bootstrap.agent import child
from bootstrap.agent.documents import RunRequest

State = int | Literal["running", "lost"] | None
"""An exit status, as of `subprocess`; "lost": its end nobody saw, as when the machine was started anew; None of a
program that was never started."""

RESTARTS = 3
"""How often a process is started again that has made no progress since its last death."""
_START_SECONDS = 30.0
_SCOPE = ("systemd-run", "--scope", "--quiet", "--collect")
"""A scope of its own: systemd would end the agent's service with a process of it that is killed for memory."""
_POLICY, _WITH_POLICY = "--property=OOMPolicy=continue", 253
"""A scope knows this property from this version of systemd on, and refuses it before (systemd.scope(5)). Amazon Linux
2023 has 252, whose scopes have no such policy, and continue."""


class Processes:
    """The programs of this machine, by names; their folders are below `root`."""

    def __init__(self, root: Path, python: str = sys.executable, *, scoped: bool = True) -> None:
        """`scoped`: whether each has a scope of systemd's, where that runs."""
        self._root, self._python, self._scoped = root, python, scoped

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        """Start it, as Python's arguments; its output is added to `log`."""
        folder = self._root / name
        folder.mkdir(parents=True)
        scope = _scope() if self._scoped and _runs_systemd() else ()
        with log.open("ab") as output:
            subprocess.Popen(
                [*scope, self._python, "-P", "-m", "bootstrap.agent.child", str(folder), self._python, "-P", *program],
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
            return int((folder / child.EXIT).read_text("utf-8"))
        return None

    def _is_starting(self, folder: Path) -> bool:
        """Whether its process may still come to leave its identity."""
        if (folder / child.IDENTITY).exists():
            return False
        return time.time() - folder.stat().st_mtime < _START_SECONDS

    def _process(self, folder: Path) -> int | None:
        """The id of the process that runs it; None where that has ended."""
        with suppress(OSError, ValueError):
            identity = (folder / child.IDENTITY).read_text("utf-8")
            process = int(identity.split()[0])
            if child.identity_of(process) == identity:
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


def staging(request: RunRequest, folder: Path, store: str, *more: str) -> list[str]:
    """The arguments of the program that brings a run's data to this node; `folder`: for what it is told, and tells."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "request.json").write_text(request.to_json(), "utf-8")
    places = (str(folder / "request.json"), store, str(folder / "progress.json"))
    return ["-m", "bootstrap.agent.stage", *places, *more]


def _scope() -> Sequence[str]:
    """What runs a program in a scope of its own that continues without a process that is killed for memory."""
    told = subprocess.run([_SCOPE[0], "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"systemd (\d+)", told)
    return (*_SCOPE, *((_POLICY,) if version and int(version[1]) >= _WITH_POLICY else ()), "--")


def _runs_systemd() -> bool:
    """Whether services of this machine, or of the emulated one that this process is on, are systemd's."""
    return bool(os.environ.get("NODE_ROOT")) or Path("/run/systemd/system").is_dir()
