"""An embedded AWS that is forked from a process which has imported the server already.

Importing it takes 0.4 of the 0.55 CPU-seconds of a start, and dozens of test files have an AWS of their own. The fork
has its own port, folder, keys and state, and ends with the connection that asked for it.
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
"""The port while the server is imported; some modules of ministack read it then."""
_POLL_SECONDS = 0.5


class ForkedAws(EmbeddedAws):
    """The emulator as a fork, for the length of a `with` block."""

    def launch(self, log: BinaryIO) -> "subprocess.Popen[bytes]":
        own, theirs = socket.socketpair()
        with theirs:
            order = {"folder": str(self.folder), "environment": self.server_environment()}
            socket.send_fds(_importer(), [b"x"], [theirs.fileno(), log.fileno()])
            own.sendall(json.dumps(order).encode() + b"\n")
        return cast("subprocess.Popen[bytes]", _Fork(own))


class _Fork:
    """What an emulator needs of its process: the connection is open at the other end as long as the process lives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.stdin = self

    def close(self) -> None:
        self._connection.shutdown(socket.SHUT_WR)

    def poll(self) -> int | None:
        return 0 if select.select([self._connection], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if not select.select([self._connection], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("the embedded AWS", timeout or 0)
        return 0

    def kill(self) -> None:
        self._connection.shutdown(socket.SHUT_RDWR)


@cache
def _importer() -> socket.socket:
    """The connection to the process that forks, which ends with this process."""
    own, theirs = socket.socketpair()
    folder = Path(tempfile.mkdtemp(prefix="imported-aws-"))
    with theirs:
        environment = EmbeddedAws(folder).server_environment()
        modules = os.pathsep.join([str(Path(__file__).parents[1]), environment["PYTHONPATH"]])
        importer = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.local_aws.forked_aws", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            env=environment | {"GATEWAY_PORT": _NO_PORT, "TMPDIR": str(folder), "PYTHONPATH": modules},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end(creator: int) -> None:
        if os.getpid() == creator:  # not a fork of it
            own.shutdown(socket.SHUT_RDWR)
            importer.wait()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end, os.getpid())

    return own


def main() -> None:
    """Fork for each connection that arrives, until the process that started this one ends."""
    from shoal_local_aws import server  # in this process alone

    gc.freeze()
    parent, orders = os.getppid(), socket.socket(fileno=int(sys.argv.pop(1)))
    while os.getppid() == parent:
        if not select.select([orders], [], [], _POLL_SECONDS)[0]:
            continue
        _, handles, *_ = socket.recv_fds(orders, 1, 2)
        if not handles:
            break
        connection, log = handles
        if os.fork() == 0:
            orders.close()
            _become(socket.socket(fileno=connection), log)
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


def _become(connection: socket.socket, log: int) -> None:
    """Take the variables, the folder and the port that an emulator has asked for, and end with its connection."""
    with connection.makefile("rb") as order:
        asked = json.loads(order.readline())
    folder, environment = asked["folder"], asked["environment"]
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
    threading.Thread(target=_end_with, args=[connection, folder], daemon=True).start()


def _end_with(connection: socket.socket, folder: str) -> None:
    parent = os.getppid()
    while os.getppid() == parent and not select.select([connection], [], [], _POLL_SECONDS)[0]:
        pass
    kill_marked(MARK, folder)
    os._exit(0)


if __name__ == "__main__":
    main()
