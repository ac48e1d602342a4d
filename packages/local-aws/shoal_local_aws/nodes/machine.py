"""Creates the emulated machines. Each machine has a folder that stands for its root folder, and environment variables.

Scripts on a machine write below `$NODE_ROOT`, and find the commands of Amazon Linux on their PATH. From the user's
shell, pass only PATH and the variables for the emulator and its wheels to the machine. With a virtual environment or a
PYTHONPATH, a script could work here and fail on a real node.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from shoal_local_aws.nodes import metadata
from shoal_local_aws.nodes.commands import write_commands, write_program
from shoal_local_aws.processes import kill_marked
from shoal_local_aws.seams import requests
from shoal_local_aws.watchdog import MARK

_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "NO_PROXY", "no_proxy", "PIP_FIND_LINKS", "AWS_ENDPOINT_URL", MARK)
_ROOT = "NODE_ROOT"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One emulated machine. `root` stands for its `/`. Its processes use only the CPU core `core`, or all cores."""

    root: Path
    environment: Mapping[str, str]
    core: int | None = None

    def start(
        self,
        command: Sequence[str],
        *,
        stdout: int | IO[bytes],
        stderr: int | IO[bytes] = subprocess.STDOUT,
        extra: Mapping[str, str] | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Start a process on this machine, in a new session. `extra` are additional environment variables. Raises
        OSError if the program is not on the machine's PATH or not executable."""
        environment = {**self.environment, **(extra or {})}
        program = shutil.which(command[0], path=environment["PATH"])
        if program is None:
            raise FileNotFoundError(f"{command[0]}: command not found")
        pinned = [] if self.core is None or not shutil.which("taskset") else ["taskset", "--cpu-list", str(self.core)]
        return subprocess.Popen(
            [*pinned, program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=self.root,
            env=environment,
            start_new_session=True,
        )

    def kill(self) -> None:
        """Kill all processes of this machine."""
        kill_marked(_ROOT, str(self.root))


class Machines:
    """Factory for machines below the emulator's folder. It also writes the commands that all machines use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self._commands = folder / "commands"
        self._hosts = folder / "hosts"
        write_commands(self._commands, file_systems=folder / "efs", hosts=self._hosts)

    def make(self, kind: str, name: str, extra: Mapping[str, str], *, profile: str, core: int | None = None) -> Machine:
        """Create a machine at `<folder>/<kind>/<name>` in the region of the current request. `extra` are environment
        variables. `profile` is the name or ARN of an instance profile, or empty."""
        root = self.folder / kind / name
        own = root / "usr" / "local" / "bin"
        for part in (own, root / "root", root / "tmp", root / "var" / "log"):
            part.mkdir(parents=True, exist_ok=True)
        kept = {name: os.environ[name] for name in os.environ if name in _KEPT}
        path = os.pathsep.join([str(own), str(self._commands), _without_environment(kept.get("PATH", os.defpath))])
        places = {_ROOT: str(root), "HOME": str(root / "root"), "TMPDIR": str(root / "tmp"), "PATH": path}
        region = dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), requests.region())
        own_service = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata.begin(name, profile)}
        return Machine(root=root, environment={**kept, **places, **region, **own_service, **extra}, core=core)

    def discard(self, machine: Machine) -> None:
        """Delete the folder of a machine in the background. A new machine can use its path at once."""
        grave = self.folder / "tmp" / f"{machine.root.name}.{time.monotonic_ns()}"
        machine.root.rename(grave)
        requests.spawn_background(shutil.rmtree, grave, True, thread_name=f"discard-{machine.root.name}")

    def put_on_network(self, address: str, machine: Machine) -> None:
        """Make a machine reachable at its address."""
        (self._hosts / address).symlink_to(machine.root)

    def take_off_network(self, address: str) -> None:
        (self._hosts / address).unlink(missing_ok=True)

    def file_system(self, identifier: str) -> Path:
        return self.folder / "efs" / identifier

    def give_interpreter(self, path: Path) -> None:
        """Write an executable file at `path` that runs this Python interpreter."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_program(path, f'exec {shlex.quote(sys.executable)} "$@"')


def _without_environment(path: str) -> str:
    """Return `path` without the folder of this Python interpreter, because nodes lack the other programs in it."""
    own = str(Path(sys.executable).parent)
    return os.pathsep.join(part for part in path.split(os.pathsep) if part != own)
