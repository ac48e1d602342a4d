"""Forks tasks from a process that has already imported their modules and loaded their compiled numba code.

Otherwise imports and loading would take most of a small task's time. The process and its tasks are one process group.
The group exits when its starter exits. If the starter exits during the warm-up, the group exits after the warm-up.
Ctrl-Z stops the starter, but not running tasks.

Do not use `multiprocessing`, because its fork server executes the calling program again in each process.
"""

import json
import os
import runpy
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, Self

from common.starter import end_with_parent

_SIZE = struct.Struct("<I")
_DONE = b"."


class TaskServer:
    """Context manager that starts the forking process at the first task, and kills it with all its tasks at the exit of
    the context."""

    def __init__(self, warm_up: str, folder: Path) -> None:
        """Create a server that is not yet started.

        `warm_up` names a module, such as `jobs.warm_up`, that has a function `warm_up`. The forking process calls this
        function with a new folder below `folder`, to import modules and load compiled code.
        """
        self._warm_up, self._folder = warm_up, folder
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
        """Run a Python script with its arguments in `folder`, and wait until it exits. Return whether it completed.

        `files` are the file descriptors of its standard streams.
        """
        asked = json.dumps([list(arguments), folder, dict(environment)]).encode()
        receiving, sending = os.pipe()
        try:
            with self._lock:
                if self._ended:
                    return False
                control = self._started()
                # the forking process has exited, which closed the pipe
                with suppress(BrokenPipeError, ConnectionResetError):
                    socket.send_fds(control, [_SIZE.pack(len(asked))], [*files, sending])
                    control.sendall(asked)
        finally:
            os.close(sending)
            status = os.fdopen(receiving, "rb")
        with status:
            return status.read() == _DONE

    def end(self) -> None:
        """Kill all tasks, and start no more tasks."""
        self._ended = True
        self._kill()  # the kill also unblocks a thread that holds the lock while it sends a request
        with self._lock:
            self._kill()
            if self._process is not None:
                self._process.wait()
                self._control.close()
                self._process = None

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _started(self) -> socket.socket:
        if self._process is None:
            self._control, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", __file__, str(theirs.fileno()), self._warm_up, str(self._folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=None if sys.stderr else subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    process_group=0,
                )
        return self._control


def main() -> None:
    """Fork tasks until the starter exits. In each forked task, run its script."""
    control, module, folder = socket.socket(fileno=int(sys.argv[1])), sys.argv[2], Path(sys.argv[3])
    server, starter = os.getpid(), os.getppid()
    try:
        with suppress(Exception):  # ignore a failed warm-up, because it only makes tasks slower
            _warm_up(module, folder / f"warm-up-{server}")
        asked, files = _next_task(control, server, starter)
    finally:
        if os.getpid() == server:
            os.killpg(0, signal.SIGKILL)  # the starter has exited, so nobody would read the output of tasks
    _run(*asked, files=files)


def _warm_up(module: str, folder: Path) -> None:
    folder.mkdir()
    try:
        import_module(module).warm_up(folder)
    finally:
        shutil.rmtree(folder)


def _next_task(control: socket.socket, server: int, starter: int) -> tuple[Any, list[int]]:
    """Wait for requests, and fork a process for each. In the forked process, return the request and its file
    descriptors.

    In the server process, raises an error when the starter has exited.
    """
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        begin, files, _, _ = socket.recv_fds(control, _SIZE.size, 4)
        asked = json.loads(_received(control, *_SIZE.unpack(begin)))
        if os.getppid() != starter:
            raise EOFError
        if not os.fork():
            end_with_parent(server, signal.SIGKILL)
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return asked, files
        for each in files:
            os.close(each)


def _run(arguments: list[str], folder: str, environment: Mapping[str, str], *, files: list[int]) -> None:
    *streams, status = files
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(status, _DONE)
    os._exit(0)  # without the removal of all objects, which takes longer than a small task


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _received(control: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size and (part := control.recv(size - len(received))):
        received += part
    return bytes(received)


if __name__ == "__main__":
    main()
