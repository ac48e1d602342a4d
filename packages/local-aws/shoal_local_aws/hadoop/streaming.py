"""Emulates Hadoop Streaming: `python -m shoal_local_aws.hadoop.streaming` with the options of `hadoop-streaming`.

A task runs under the same conditions as on a real cluster. It reads the lines of its file, Hadoop sorts and partitions
the keys, and failed attempts are repeated. The output appears only after the whole job has succeeded. The rules are
those of Hadoop's `PipeMapRed`, `HashPartitioner` and `TextOutputFormat`. Four of these rules are unexpected:

- A line without a tab gets one at its end.
- A carriage return ends a line of a task's output.
- The output of a reducer without input is dropped.
- A mapper that does not read all of its input fails.
"""

import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.faults.kinds import AttemptFaults
from shoal_local_aws.hadoop.attempts import (
    AttemptControl,
    Attempts,
    HadoopTask,
    TaskError,
    merge_sorted,
    run_attempt,
)
from shoal_local_aws.hadoop.job import StreamingJob, input_files, parse_options, read_lines
from shoal_local_aws.hadoop.paths import Files
from shoal_local_aws.hadoop.yarn import LOGS, MARK

_FAULTS_VARIABLE = "HADOOP_ATTEMPT_FAULTS"


class StreamingRun:
    """One run of a job. The standard error of a task attempt is written to `<logs>/<job>/<attempt>/stderr`. `scratch`
    is an empty folder for intermediate files."""

    def __init__(self, job: StreamingJob, *, scratch: Path, logs: Path, faults: AttemptFaults) -> None:
        self._job = job
        self._attempts = Attempts(job.properties, faults, _log)
        self._scratch = scratch
        self._files = Files()
        self._number = os.environ.get(MARK, f"application_{int(time.time() * 1000)}_0001").partition("_")[2]
        self._logs = logs / f"job_{self._number}"
        self._output = job.output.rstrip("/")
        self._shipped: dict[str, Path] = {}
        self._map_outputs: list[list[Path]] = []

    def execute(self) -> None:
        """Run the job and commit its output. Raises EmulatorError if the input is missing, the output exists, or a task
        failed in all of its attempts."""
        job = self._job
        if self._files.find(self._output) is not None:
            raise EmulatorError(f"Output directory {self._output} already exists")
        sources = [source for path in job.inputs for source in input_files(self._files, path)]
        self._ship()
        _log(f"Running job: job_{self._number}\nnumber of splits:{len(sources)}")
        try:
            with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
                try:
                    results = self._tasks(sources, pool)
                except BaseException:
                    self._attempts.abandon()
                    raise
        except TaskError as error:
            raise EmulatorError(f"Job failed! {error}") from error
        self._commit(results)
        _log(f"Job job_{self._number} completed successfully\nOutput directory: {self._output}")

    def _tasks(self, sources: list[str], pool: ThreadPoolExecutor) -> list[Path]:
        """Run all tasks, and return the output files of the job in order."""
        self._map_outputs = _all(
            [pool.submit(self._map, source, number) for number, source in enumerate(sources)],
            lambda share: _log(f" map {share:.0%} reduce 0%"),
        )
        if not self._job.reduces:
            return [outputs[0] for outputs in self._map_outputs]
        return _all(
            [pool.submit(self._reduce, number) for number in range(self._job.reduces)],
            lambda share: _log(f" map 100% reduce {share:.0%}"),
        )

    def _ship(self) -> None:
        for name, uri in self._job.shipped.items():
            if self._files.find(uri) is None:
                raise EmulatorError(f"File {uri} of option -files does not exist")
            target = self._scratch / "shipped" / name
            target.parent.mkdir(exist_ok=True)
            with self._files.open(uri) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
            target.chmod(0o755)
            self._shipped[name] = target

    def _map(self, path: str, number: int) -> list[Path]:
        task = self._task("m", number, self._job.mapper)
        return self._run(task, "map", lambda _chance: read_lines(self._files, path), max(1, self._job.reduces))

    def _reduce(self, number: int) -> Path:
        task = self._task("r", number, self._job.reducer)
        parts = [outputs[number] for outputs in self._map_outputs]
        (target,) = self._run(task, "reduce", lambda chance: merge_sorted(parts, self._scratch, chance), 1)
        if not any(part.stat().st_size for part in parts):
            target.write_bytes(b"")  # Hadoop drops the output of a reducer without input
        for part in parts:
            part.unlink()
        return target

    def _task(self, kind: str, number: int, command: str) -> HadoopTask:
        name, environment = f"task_{self._number}_{kind}_{number:06d}", {**os.environ, **self._job.environment}
        return HadoopTask(name=name, command=command, environment=environment, shipped=self._shipped)

    def _run(
        self, task: HadoopTask, kind: str, source: Callable[[random.Random], Iterator[bytes]], partitions: int
    ) -> list[Path]:
        """Run a task, and return the files of its successful attempt, one for each partition."""

        def outputs(name: str) -> list[Path]:
            return [self._scratch / f"{name}.{part}" for part in range(partitions)]

        def once(name: str, control: AttemptControl) -> None:
            folder = self._scratch / name
            named = {"mapreduce_task_attempt_id": name, "TMPDIR": str(folder)}
            this = replace(task, environment={**task.environment, **named})
            try:
                source_blocks = source(self._attempts.chance(name))
                run_attempt(this, folder, self._logs / name / "stderr", source_blocks, outputs(name), control)
            except BaseException:
                for path in outputs(name):
                    path.unlink(missing_ok=True)
                raise
            finally:
                shutil.rmtree(folder, ignore_errors=True)

        return outputs(self._attempts.run_until_success(task, kind, once))

    def _commit(self, results: list[Path]) -> None:
        """Move the output files to the output folder, and write `_SUCCESS` last."""
        success = self._scratch / "_SUCCESS"
        success.touch()
        for number, result in enumerate(results):
            self._files.put(result, f"{self._output}/part-{number:05d}")
        self._files.put(success, f"{self._output}/_SUCCESS")


def _all(futures: list["Future[Any]"], report: Callable[[float], None]) -> list[Any]:
    """Return the results of all tasks in order. After the first failure, cancel the tasks that have not started."""
    for done, future in enumerate(as_completed(futures), start=1):
        if future.exception() is not None:
            for other in futures:
                other.cancel()
        future.result()
        report(done / len(futures))
    return [future.result() for future in futures]


def _log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)  # noqa: T201


def attempt_faults_environment(faults: AttemptFaults) -> dict[str, str]:
    """Return the environment variables by which the emulator passes these faults to this program."""
    return {_FAULTS_VARIABLE: json.dumps(asdict(faults))}


def main() -> int:
    """Run the job that the command line defines, and return the exit code of `hadoop-streaming`."""
    root = Path(os.environ["NODE_ROOT"])
    os.environ.pop("PYTHONPATH", None)  # PYTHONPATH contains this package, which tasks must not see
    faults = AttemptFaults(**json.loads(os.environ.pop(_FAULTS_VARIABLE, "{}")))
    (root / "mnt" / "yarn").mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=root / "mnt" / "yarn") as scratch:
            job = parse_options(sys.argv[1:])
            StreamingRun(job, scratch=Path(scratch), logs=root / LOGS, faults=faults).execute()
    except EmulatorError as error:
        _log(f"{error}\nStreaming Command Failed!")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
