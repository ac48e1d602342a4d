"""Starts Python programs by forks of one process that has already imported slow modules, such as PyTorch.

    with WarmParent("tests.trainer.forked:prepare", RANK_ENVIRONMENT) as parent:
        process = parent.start("-m", "trainer", "--help", environment=os.environ, stdout=PIPE)

The result has the methods of `subprocess.Popen`. The program is in the process group of this process, but is a child of
the warm parent.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Self

PIPE, STDOUT = subprocess.PIPE, subprocess.STDOUT


class ForkedProcess:
    """A running program. The warm parent writes its exit status to the pipe `status`."""

    def __init__(self, pid: int, args: tuple[str, ...], status: int, stdout: int | None, stderr: int | None) -> None:
        self.pid, self.args, self._status = pid, args, status
        self.returncode: int | None = None
        self.stdout, self.stderr = (None if file is None else os.fdopen(file) for file in (stdout, stderr))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in filter(None, (self.stdout, self.stderr)):
            file.close()
        self.wait()

    def poll(self) -> int | None:
        return self.wait(0) if self.returncode is not None or self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(os.read(self._status, 16))
            os.close(self._status)
        return self.returncode

    def _has_ended(self, timeout: float | None) -> bool:
        return bool(select.select([self._status], [], [], timeout)[0])

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        """Read both outputs to their end, and wait for the program."""
        texts: dict[str, str] = {}
        files = {name: file for name in ("stdout", "stderr") if (file := getattr(self, name))}
        threads = [
            Thread(target=lambda name=name, file=file: texts.update({name: file.read()}), daemon=True)
            for name, file in files.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout)
        if len(texts) < len(files):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        with self:
            return texts.get("stdout"), texts.get("stderr")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class WarmParent:
    """A process that calls the function `preparation` ("module:function"), and then forks programs on request.

    Variables in `environment` that a library reads when it is imported, such as OMP_NUM_THREADS, apply to all programs.
    """

    def __init__(self, preparation: str, environment: Mapping[str, str]) -> None:
        self._control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(other.fileno()), preparation],
            env={**os.environ, **environment},
            pass_fds=[other.fileno()],
        )
        other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._process.wait()

    def start(
        self, *program: object, environment: Mapping[str, str], stdout: int | None = None, stderr: int | None = None
    ) -> ForkedProcess:
        """Start a program, a file or `-m` and a module, followed by its arguments."""
        out, err = (os.pipe() if wanted == PIPE else None for wanted in (stdout, stderr))
        ended, words = os.pipe(), tuple(map(str, program))
        own_out = out[1] if out else 1
        own_err = err[1] if err else own_out if stderr == STDOUT else 2
        request = json.dumps([words, str(Path.cwd()), dict(environment)]).encode()
        socket.send_fds(self._control, [request], [0, own_out, own_err, ended[1]])
        for pipe in filter(None, (out, err, ended)):
            os.close(pipe[1])
        return ForkedProcess(int(self._control.recv(16)), words, ended[0], out and out[0], err and err[0])


def serve(control: socket.socket) -> list[str]:
    """Fork a process for each request, and report its end. Return the program in the new process, and an empty list at
    the end of the requests."""
    children: dict[int, tuple[int, int]] = {}
    while True:
        for ready in select.select([control, *children], [], [])[0]:
            if ready is not control:
                process, status = children.pop(ready)
                os.write(status, str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())
                os.close(status)
                os.close(ready)
                continue
            request, files, *_ = socket.recv_fds(control, 1 << 20, 4)
            if not request:
                return []
            assert len([*Path("/proc/self/task").iterdir()]) == 1, "threads do not survive a fork"
            process = os.fork()
            if process == 0:
                for file in (control.detach(), *children, *(status for _, status in children.values()), files.pop()):
                    os.close(file)
                return become(request, files)
            children[os.pidfd_open(process)] = process, files.pop()
            for file in files:
                os.close(file)
            control.send(str(process).encode())


def become(request: bytes, files: list[int]) -> list[str]:
    """Take over the standard files, folder and environment of a program. Return the program."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    program, folder, environment = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return program


def run(program: list[str]) -> None:
    """Run a module or a file in this process, like Python's command line."""
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    module, _, function = sys.argv[2].partition(":")
    getattr(importlib.import_module(module), function)()
    if requested := serve(socket.socket(fileno=int(sys.argv[1]))):
        run(requested)
