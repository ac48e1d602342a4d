"""mrjob's local runner with forks of one process as tasks (task_server.py): a thread waits for each, and all can be
ended at once.

mrjob starts tasks by a `multiprocessing.Pool`. Do not use it: an idle worker holds the pool's lock, and when Ctrl-C
ends that worker, the pool waits for the lock for ever.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import BinaryIO

from mrjob.local import LocalMRJobRunner
from mrjob.step import StepFailedException

from jobs.task_server import TaskServer


class LocalRunner(LocalMRJobRunner):
    """Runs a job's tasks by `server`, as many at once as `num_cores` says, and ends them all when one fails."""

    server: TaskServer

    def _invoke_task_func(self, task_type: str, step_num: int, task_num: int) -> Callable[..., None]:
        return partial(self._run_task, self._substep_args(step_num, task_type), f"{task_type} {task_num}")

    def _run_multiple(self, funcs: Iterable[Callable[[], None]], num_processes: int | None = None) -> None:  # noqa: ARG002
        with ThreadPoolExecutor(self._opts["num_cores"], "task") as threads:
            try:
                for ended in as_completed([threads.submit(run) for run in funcs]):
                    ended.result()
            except BaseException:
                self.server.end()
                raise

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
        files = [each.fileno() for each in (stdin, stdout, stderr)]
        if not self.server.run(command[1:], files, folder=folder, environment=environment):
            raise StepFailedException(step_desc=name, reason="it ended before it was done")
