"""Plays Hadoop Streaming: `python -m embedded.streaming` with the options of `hadoop-streaming`.

What a task of a real cluster meets, it meets here: the lines of its split, keys sorted and partitioned as Hadoop
does it, attempts that are retried, an output that appears only when the whole job succeeded. After `PipeMapRed`,
`HashPartitioner` and `TextOutputFormat` of Hadoop. Four things of theirs surprise: a line without a tab leaves with
one at its end; a carriage return ends a line of a task's output; the output of a reducer that had no input is
dropped; and a mapper that leaves input unread fails.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embedded.errors import EmulatorError
from embedded.inputs import FileSplit, input_files, lines, splits
from embedded.paths import Files
from embedded.tasks import Task, TaskError, attempt, merged, tries

_DELIMITER = "textinputformat.record.delimiter"
_UNPLAYED = (
    "stream.",
    "mapreduce.job.inputformat",
    "mapreduce.job.output.key.comparator",
    "mapreduce.job.partitioner",
    "mapreduce.output.fileoutputformat.compress",
    "mapreduce.partition.",
)


@dataclass(kw_only=True)
class Job:
    """What the command line asks for.

    properties: the job's configuration, by name.
    shipped: a URI for every file that tasks find in their folder, by its name there.
    """

    properties: dict[str, str] = field(default_factory=dict)
    shipped: dict[str, str] = field(default_factory=dict)
    mapper: str = ""
    reducer: str = ""
    inputs: list[str] = field(default_factory=list)
    output: str = ""

    @property
    def reduces(self) -> int:
        """Number of reducers; none makes the mappers' output the job's."""
        return int(self.properties.get("mapreduce.job.reduces", "1"))


def parse(arguments: Sequence[str]) -> Job:
    """Read the options of `hadoop-streaming`: generic ones first, then those of the job.

    Raises:
        EmulatorError: an option is unknown, lacks its value, stands in the wrong place or is not played.
    """
    job = Job()
    rest = list(arguments)
    generic = True
    while rest:
        option = rest.pop(0)
        if option.startswith("-D") and option != "-D":
            rest.insert(0, option[2:])
            option = "-D"
        if not rest:
            raise EmulatorError(f"Streaming option {option} needs a value.")
        value = rest.pop(0)
        if option in ("-D", "-files"):
            if not generic:
                raise EmulatorError(f"Generic option {option} must stand before the streaming options.")
            _read_generic(job, option, value)
            continue
        generic = False
        if option == "-input":
            job.inputs.append(value)
        elif option in ("-mapper", "-reducer", "-output"):
            setattr(job, option[1:], value)
        else:
            raise EmulatorError(f"The embedded Hadoop does not play streaming option {option}.")
    for name in ("inputs", "output", "mapper"):
        if not getattr(job, name):
            raise EmulatorError(f"Streaming option -{name.removesuffix('s')} is missing.")
    if job.reduces and not job.reducer:
        raise EmulatorError("Streaming option -reducer is missing; for none say -D mapreduce.job.reduces=0.")
    return job


def _read_generic(job: Job, option: str, value: str) -> None:
    if option == "-files":
        for uri in value.split(","):
            path, _, name = uri.partition("#")
            job.shipped[name or path.rpartition("/")[2]] = path if ":" in path else f"file://{Path(path).resolve()}"
        return
    name, separator, setting = value.partition("=")
    if not separator:
        raise EmulatorError(f"Property {value!r} needs a value: -D NAME=VALUE.")
    if name.startswith(_UNPLAYED) or (name == _DELIMITER and setting != "\n"):
        raise EmulatorError(f"The embedded Hadoop does not play property {name}.")
    job.properties[name] = setting


class Run:
    """One run of a job.

    Args:
        scratch: an empty folder for what lies between input and output.
        logs: what tasks say on their standard error goes to `<logs>/<job>/<attempt>/stderr`.
    """

    def __init__(self, job: Job, *, scratch: Path, logs: Path) -> None:
        self._job = job
        self._scratch = scratch
        self._files = Files()
        self._number = f"{int(time.time() * 1000)}_0001"
        self._logs = logs / f"job_{self._number}"
        self._output = job.output.rstrip("/")
        self._shipped: dict[str, Path] = {}
        self._map_outputs: list[list[Path]] = []

    def execute(self) -> None:
        """Run the job and commit its output.

        Raises:
            EmulatorError: the input is missing, the output exists, or a task failed in all of its attempts.
        """
        job = self._job
        if self._files.find(self._output) is not None:
            raise EmulatorError(f"Output directory {self._output} already exists")
        cut = splits([entry for path in job.inputs for entry in input_files(self._files, path)], job.properties)
        self._ship()
        _say(f"Running job: job_{self._number}\nnumber of splits:{len(cut)}")
        try:
            with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
                self._map_outputs = _all(
                    [pool.submit(self._map, split, number) for number, split in enumerate(cut)],
                    lambda share: _say(f" map {share:.0%} reduce 0%"),
                )
                results = [outputs[0] for outputs in self._map_outputs]
                if job.reduces:
                    results = _all(
                        [pool.submit(self._reduce, number) for number in range(job.reduces)],
                        lambda share: _say(f" map 100% reduce {share:.0%}"),
                    )
        except TaskError as error:
            raise EmulatorError(f"Job failed! {error}") from error
        self._commit(results)
        _say(f"Job job_{self._number} completed successfully\nOutput directory: {self._output}")

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

    def _map(self, split: FileSplit, number: int) -> list[Path]:
        only_newline = _DELIMITER in self._job.properties
        task = self._task(
            "m",
            number,
            self._job.mapper,
            {
                "mapreduce_map_input_file": split.path,
                "mapreduce_map_input_start": str(split.start),
                "mapreduce_map_input_length": str(split.length),
            },
        )
        targets = [self._scratch / f"{task.name}.{part}" for part in range(max(1, self._job.reduces))]
        self._run(task, "map", lambda: lines(self._files, split, only_newline=only_newline), targets)
        return targets

    def _reduce(self, number: int) -> Path:
        task = self._task("r", number, self._job.reducer, {})
        parts = [outputs[number] for outputs in self._map_outputs]
        target = self._scratch / f"{task.name}.0"
        self._run(task, "reduce", lambda: merged(parts, self._scratch), [target])
        if not any(part.stat().st_size for part in parts):
            target.write_bytes(b"")  # Hadoop drops what a reducer without input says
        for part in parts:
            part.unlink()
        return target

    def _task(self, kind: str, number: int, command: str, more: dict[str, str]) -> Task:
        name = f"task_{self._number}_{kind}_{number:06d}"
        configuration = {re.sub("[^A-Za-z0-9]", "_", key): value for key, value in self._job.properties.items()}
        own = {
            "mapreduce_job_id": f"job_{self._number}",
            "mapreduce_job_reduces": str(self._job.reduces),
            "mapreduce_task_id": name,
            "mapreduce_task_ismap": str(kind == "m").lower(),
            "mapreduce_task_partition": str(number),
        }
        environment = {**os.environ, **configuration, **own, **more}
        return Task(name=name, command=command, environment=environment, shipped=self._shipped)

    def _run(self, task: Task, kind: str, source: Callable[[], Iterator[bytes]], targets: list[Path]) -> None:
        def once(name: str) -> None:
            folder = self._scratch / name
            named = {"mapreduce_task_attempt_id": name, "TMPDIR": str(folder)}
            this = replace(task, environment={**task.environment, **named})
            attempt(this, folder, self._logs / name / "stderr", source(), targets)
            shutil.rmtree(folder)

        tries(task, int(self._job.properties.get(f"mapreduce.{kind}.maxattempts", "4")), once, _say)

    def _commit(self, results: list[Path]) -> None:
        """Put the output in its place, `_SUCCESS` last; of a commit that fails nothing stays."""
        success = self._scratch / "_SUCCESS"
        success.touch()
        placed = []
        try:
            for number, result in enumerate(results):
                placed.append(f"{self._output}/part-{number:05d}")
                self._files.put(result, placed[-1])
            self._files.put(success, f"{self._output}/_SUCCESS")
        except BaseException:
            for path in placed:
                self._files.remove(path)
            raise


def _all(futures: list["Future[Any]"], report: Callable[[float], None]) -> list[Any]:
    """The results of all tasks, in their order; the first failure cancels those that have not begun."""
    for done, future in enumerate(as_completed(futures), start=1):
        if future.exception() is not None:
            for other in futures:
                other.cancel()
        future.result()
        report(done / len(futures))
    return [future.result() for future in futures]


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)  # noqa: T201


def main() -> int:
    """Run the job of this process's arguments; returns the exit code."""
    root = Path(os.environ["NODE_ROOT"])
    os.environ.pop("PYTHONPATH", None)  # it led here; a task's own code is none of this package's business
    (root / "mnt" / "yarn").mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=root / "mnt" / "yarn") as scratch:
            job = parse(sys.argv[1:])
            Run(job, scratch=Path(scratch), logs=root / "var" / "log" / "hadoop-yarn" / "containers").execute()
    except EmulatorError as error:
        _say(f"{error}\nStreaming Command Failed!")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
