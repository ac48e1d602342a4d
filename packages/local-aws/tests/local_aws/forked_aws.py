"""An emulator that is forked from a process that has already imported the server.

Imports take nearly all of the CPU time of a start, and dozens of test files have their own emulator. A fork has its own
port, folder, keys and state, and stops when the connection that requested it closes.
"""

import atexit
import gc
import json
import os
import random
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, cast

from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.processes import kill_marked
from shoal_local_aws.watchdog import MARK

_NO_PORT = "65535"
"""Port while the server is imported. Some modules of ministack read the port at that time."""
_POLL_SECONDS = 0.5


class ForkedAws(EmbeddedAws):
    """The emulator as a forked process that runs during a `with` block."""

    def _launch(self, log: BinaryIO) -> "subprocess.Popen[bytes]":
        own, remote = socket.socketpair()
        with remote:
            request = {"folder": str(self.folder), "environment": self._server_environment()}
            socket.send_fds(_importer(), [b"x"], [remote.fileno(), log.fileno()])
            own.sendall(json.dumps(request).encode() + b"\n")
        return cast("subprocess.Popen[bytes]", _Fork(own))


class _Fork:
    """The part of Popen that an emulator needs. The other end of the connection is open while the fork exists."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.stdin = self

    def close(self) -> None:
        self._connection.shutdown(socket.SHUT_WR)

    def poll(self) -> int | None:
        return 0 if select.select([self._connection], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if not select.select([self._connection], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("the emulator", timeout or 0)
        return 0

    def kill(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)


@cache
def _importer() -> socket.socket:
    """Start the process that forks, which exits with this process. Return the connection for requests."""
    own, remote = socket.socketpair()
    folder = Path(tempfile.mkdtemp(prefix="imported-aws-"))
    with remote:
        environment = EmbeddedAws(folder)._server_environment()
        modules = os.pathsep.join([str(Path(__file__).parents[2]), environment["PYTHONPATH"]])
        importer = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.local_aws.forked_aws", str(remote.fileno())],
            stdin=subprocess.DEVNULL,
            env=environment | {"GATEWAY_PORT": _NO_PORT, "TMPDIR": str(folder), "PYTHONPATH": modules},
            pass_fds=[remote.fileno()],
            start_new_session=True,
        )

    def stop(creator: int) -> None:
        if os.getpid() == creator:  # not in a fork of this process
            own.shutdown(socket.SHUT_RDWR)
            importer.wait()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(stop, os.getpid())
    return own


def main() -> None:
    """Fork for each request, until the process that started this one exits."""
    from shoal_local_aws import server  # in this process alone

    gc.freeze()
    parent, requests = os.getppid(), socket.socket(fileno=int(sys.argv.pop(1)))
    while os.getppid() == parent:
        if not select.select([requests], [], [], _POLL_SECONDS)[0]:
            continue
        _, handles, *_ = socket.recv_fds(requests, 1, 2)
        if not handles:
            break
        connection, log = handles
        if os.fork() == 0:
            requests.close()
            _configure(socket.socket(fileno=connection), log)
            server.main()
            os._exit(0)
        os.close(connection)
        os.close(log)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    with suppress(ChildProcessError):
        while os.wait():
            pass


def _configure(connection: socket.socket, log: int) -> None:
    """Apply the environment, folder and port of a request, and stop this process when the connection closes."""
    with connection.makefile("rb") as lines:
        request = json.loads(lines.readline())
    folder, environment = request["folder"], request["environment"]
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(environment, **{MARK: folder})
    sys.argv[1:] = [folder]
    tempfile.tempdir = None
    random.seed()
    for name, module in list(sys.modules.items()):
        if name.startswith("ministack."):
            for variable, value in list(vars(module).items()):
                if isinstance(value, str) and _NO_PORT in value and not variable.startswith("__"):
                    setattr(module, variable, value.replace(_NO_PORT, environment["GATEWAY_PORT"]))
    threading.Thread(target=_exit_with, args=[connection, folder], daemon=True).start()


def _exit_with(connection: socket.socket, folder: str) -> None:
    """Wait until the connection closes, then kill the emulator's processes and exit."""
    parent = os.getppid()
    while os.getppid() == parent and not select.select([connection], [], [], _POLL_SECONDS)[0]:
        pass
    kill_marked(MARK, folder)
    os._exit(0)


if __name__ == "__main__":
    main()
