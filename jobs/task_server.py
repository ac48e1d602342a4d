"""A process that has imported what tasks need, and loaded what numba has compiled for them: each task is a fork of it.

Of a small task both would be most of the time. Do not use `multiprocessing`: its fork server runs the program that
calls it once more in each process. It and its tasks are a process group, which ends with whoever started it.
"""

import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Self

_SIZE = struct.Struct("<I")
_DONE = b"."


class TaskServer:
    """Starts the process at the first task, and ends it, with all tasks, at the end of the block."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def run(
        self, arguments: Sequence[str], files: Sequence[int], *, folder: str, environment: Mapping[str, str]
    ) -> bool:
        """Run a Python script with its arguments, in a folder; `files` are its standard streams. Waits for it; returns
        whether it came to its end."""
        asked = json.dumps([list(arguments), folder, dict(environment)]).encode()
        receiving, sending = os.pipe()
        try:
            with self._lock:
                if self._ended:
                    return False
                control = self._started()
                socket.send_fds(control, [_SIZE.pack(len(asked))], [*files, sending])
                control.sendall(asked)
        finally:
            os.close(sending)
        with os.fdopen(receiving, "rb") as status:
            return status.read() == _DONE

    def end(self) -> None:
        """End all tasks; no other starts."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
                self._control.close()
                self._process = None

    def _started(self) -> socket.socket:
        if self._process is None:
            self._control, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", __file__, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    process_group=0,
                )
        return self._control


def _serve(control: socket.socket) -> None:
    """Start tasks until nobody can ask for them; returns in each of them."""
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        begin, files, _, _ = socket.recv_fds(control, _SIZE.size, 4)
        if not begin:
            os.killpg(0, signal.SIGKILL)  # who asked is gone, and nobody will read what the tasks write
        arguments, folder, environment = json.loads(_received(control, *_SIZE.unpack(begin)))
        if not os.fork():
            break
        for each in files:
            os.close(each)
    control.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, status = files
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
    sys.stdout.flush()
    os.write(status, _DONE)


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _received(control: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size and (part := control.recv(size - len(found))):
        found += part
    return bytes(found)


def main() -> Any:
    from jobs import warm_up

    warm_up.main()
    _serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
