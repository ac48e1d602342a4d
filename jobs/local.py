"""mrjob's local runner with child processes as tasks: a thread waits for each, and all can be ended at once.

mrjob starts tasks by a `multiprocessing.Pool`. Do not use it: an idle worker holds the pool's lock, and when Ctrl-C
ends that worker, the pool waits for the lock for ever.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from subprocess import Popen
from threading import Lock
from typing import BinaryIO

from mrjob.local import LocalMRJobRunner
from mrjob.step import StepFailedException


class LocalRunner(LocalMRJobRunner):
    """Runs a job's tasks as processes, as many at once as `num_cores` says, and ends them all when one fails."""

    def _invoke_task_func(self, task_type: str, step_num: int, task_num: int) -> Callable[..., None]:
        return partial(self._run_task, self._substep_args(step_num, task_type), f"{task_type} {task_num}")

    def _run_multiple(self, funcs: Iterable[Callable[[], None]], num_processes: int | None = None) -> None:  # noqa: ARG002
        with ThreadPoolExecutor(self._opts["num_cores"], "task") as threads, closing(_TaskProcesses()) as self._tasks:
            for ended in as_completed([threads.submit(run) for run in funcs]):
                ended.result()

    def _run_task(
        self,
        command: list[str],
        name: str,
        stdin: BinaryIO,
        stdout: BinaryIO,
        stderr: BinaryIO,
        folder: str,
        environment: Mapping[str, str],
    ) -> None:
        status = self._tasks.run(
            lambda: Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder, env=environment)
        )
        if status:
            raise StepFailedException(step_desc=name, reason=f"it ended with status {status}")


class _TaskProcesses:
    """The running processes of tasks; `close` ends them, and no other starts after it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ended = False
        self._running: set[Popen[bytes]] = set()

    def run(self, start: Callable[[], "Popen[bytes]"]) -> int:
        """Start a process and wait for it; returns its exit status."""
        with self._lock:
            if self._ended:
                raise StepFailedException(reason="the job ended before this task began")
            process = start()
            self._running.add(process)
        try:
            return process.wait()
        finally:
            with self._lock:
                self._running.remove(process)

    def close(self) -> None:
        with self._lock:
            self._ended = True
            for process in self._running:
                process.kill()
