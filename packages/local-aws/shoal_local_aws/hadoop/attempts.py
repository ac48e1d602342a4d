"""Runs the attempts of a job's tasks, and kills some of the attempts if a fault requests it.

On a cluster, two attempts of a task may run at once, and any attempt may be killed at any time. A killed attempt does
not count as a failure of its task. A line of a task's output is a key, a tab and a value. If a line has no tab, the
whole line is the key, and a tab is added.
"""

import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from shoal_local_aws.faults.kinds import AttemptFaults
from shoal_local_aws.hadoop.job import whole_number

_BLOCK = 1 << 20
_SORT_MEMORY = "64M"
_ARGUMENT = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^'\" ]+)")
_MOST_KILLS = 3  # for each task, so that every job completes


class TaskError(Exception):
    """An attempt of a task failed. As on YARN, only the log of the attempt contains the output of its process."""


class KilledError(TaskError):
    """An attempt was killed by the cluster. This does not count as a failure of the task."""


class AttemptControl:
    """Control by which another thread can kill an attempt: at once, or as soon as the process of the attempt starts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.killed_event = threading.Event()

    def attach(self, process: "subprocess.Popen[bytes]") -> None:
        """Set the process of the attempt, which must be the leader of a process group."""
        with self._lock:
            self._process = process
        if self.killed_event.is_set():
            self.kill()

    def kill(self) -> None:
        with self._lock:
            self.killed_event.set()
            if self._process is not None and self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)


@dataclass(frozen=True, kw_only=True)
class HadoopTask:
    """Definition of a task, which is the same for all of its attempts.

    name: `task_<job>_<m or r>_<number>`.
    shipped: Files to put into the task's folder, by their names in this folder. `command` may name them.
    """

    name: str
    command: str
    environment: Mapping[str, str]
    shipped: Mapping[str, Path]


def java_hash(key: bytes) -> int:
    """Return the hash that `WritableComparator.hashBytes` computes: from h = 1, h = 31 h + byte as a signed 32-bit
    integer."""
    value = 1
    for byte in key:
        value = (31 * value + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@lru_cache(maxsize=1 << 16)
def partition_of(key: bytes, partitions: int) -> int:
    """Return the number of the reducer for a key, as Hadoop's `HashPartitioner` computes it."""
    return (java_hash(key) & 0x7FFFFFFF) % partitions


def split_arguments(command: str) -> list[str]:
    """Split a command into words as Streaming does: at spaces outside of quotes. No other character is special."""
    return [one or two or plain for one, two, plain in _ARGUMENT.findall(command)]


def run_attempt(
    task: HadoopTask, folder: Path, log: Path, source: Iterator[bytes], targets: Sequence[Path], control: AttemptControl
) -> None:
    """Run a task's process once. Write each record to the file in `targets` for the partition of the record's key.

    `folder` is the working folder of the process, and is emptied first. `log` gets its standard error.

    Raises:
        TaskError: The process did not start, failed, or left input unread, or the input is unreadable.
        KilledError: The control killed the process.
    """
    if control.killed_event.is_set():
        raise KilledError("killed before it started")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, shipped in task.shipped.items():
        (folder / name).symlink_to(shipped)
    log.parent.mkdir(parents=True, exist_ok=True)
    arguments = split_arguments(task.command)
    path = os.pathsep.join([str(folder), task.environment["PATH"]])
    program = shutil.which(arguments[0], path=path)
    if program is None:
        raise TaskError(f"Cannot run program {arguments[0]!r}: not found")
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [program, *arguments[1:]],
            cwd=folder,
            env=dict(task.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            process_group=0,
        )
    control.attach(process)
    assert process.stdin is not None
    assert process.stdout is not None
    feeder = _Feeder(source, process.stdin)
    feeder.start()
    try:
        with ExitStack() as files:
            _collect(process.stdout, [files.enter_context(target.open("wb")) for target in targets])
    except OSError as error:
        process.kill()
        process.wait()
        raise TaskError(f"writing the output failed: {error.strerror}") from error
    code = process.wait()
    feeder.join()
    if control.killed_event.is_set():
        raise KilledError("killed while it ran")
    if feeder.error is not None:
        raise TaskError(f"reading the input failed: {feeder.error}") from feeder.error
    if code or feeder.unread:
        how = f"subprocess failed with code {code}" if code else "subprocess left input unread (Broken pipe)"
        raise TaskError(how)


class _Feeder(threading.Thread):
    """Thread that writes blocks to a process's standard input, until all blocks are written or the process closes its
    input."""

    def __init__(self, source: Iterator[bytes], target: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._source, self._target = source, target
        self.unread = False
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for block in self._source:
                self._target.write(block)
        except BrokenPipeError:
            self.unread = True
        except Exception as error:
            self.error = error
        finally:
            try:
                self._target.close()
            except BrokenPipeError:
                self.unread = True


def _collect(source: IO[bytes], targets: Sequence[IO[bytes]]) -> None:
    count = len(targets)
    for raw in source:
        line = raw.rstrip(b"\n")
        for record in line.replace(b"\r\n", b"\r").rstrip(b"\r").split(b"\r") if b"\r" in line else (line,):
            key, tab, _value = record.partition(b"\t")
            target = targets[partition_of(key, count)] if count > 1 else targets[0]
            target.write(record + (b"\n" if tab else b"\t\n"))


def merge_sorted(parts: Sequence[Path], scratch: Path, chance: random.Random) -> Iterator[bytes]:
    """Yield the records of all parts in blocks, sorted by the bytes of their keys, in constant memory.

    Hadoop does not define the order of equal keys, so `chance` decides it. Raises TaskError for a full disk.
    """
    shuffled = chance.sample(parts, len(parts))
    ties = chance.choice((["-s"], []))  # equal keys: in the order of the parts, or sorted by the whole record
    command = ["sort", *ties, "-t", "\t", "-k1,1", "-S", _SORT_MEMORY, "-T", str(scratch), *map(str, shuffled)]
    sort = subprocess.Popen(command, env=os.environ | {"LC_ALL": "C"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert sort.stdout is not None
    assert sort.stderr is not None
    try:
        while block := sort.stdout.read(_BLOCK):
            yield block
        message = sort.stderr.read().decode(errors="replace").strip()
        if sort.wait():
            raise TaskError(f"sorting failed: {message}")
    finally:
        sort.kill()
        sort.wait()
        sort.stdout.close()
        sort.stderr.close()


class Attempts:
    """Runs the tasks of one job, each in as many attempts as it needs, and reports attempts without success."""

    def __init__(self, properties: Mapping[str, str], faults: AttemptFaults, report: Callable[[str], None]) -> None:
        self._properties = properties
        self._faults = faults
        self._report = report
        self._controls: set[AttemptControl] = set()
        self._abandoned = False

    def chance(self, name: str) -> random.Random:
        """Return the random generator of a task or an attempt. It has the same seed in every run of the job."""
        return random.Random(f"{self._faults.seed} {'_'.join(name.split('_')[3:])}")  # noqa: S311

    def abandon(self) -> None:
        """Kill all running attempts, and start no more."""
        self._abandoned = True
        for control in tuple(self._controls):
            control.kill()

    def run_until_success(self, task: HadoopTask, kind: str, once: Callable[[str, AttemptControl], None]) -> str:
        """Run a task of a kind (`map` or `reduce`), and return the name of the successful attempt. `once` runs one
        attempt, given its name and a control that can kill it. Raises TaskError if the task has failed in as many
        attempts as the job allows."""
        limit = whole_number(self._properties, f"mapreduce.{kind}.maxattempts", 4)
        speculative = self._properties.get(f"mapreduce.{kind}.speculative", "true") != "false"
        chance = self.chance(task.name)
        names = (f"{task.name.replace('task_', 'attempt_', 1)}_{number}" for number in itertools.count())
        doubled = speculative and chance.random() < self._faults.doubled
        failures, kills = 0, 0
        while failures < limit:
            if self._abandoned:
                raise KilledError(f"Task {task.name} was killed with its job")
            racing = list(itertools.islice(names, 2 if doubled else 1))
            doubled = False
            to_kill = [name for name in racing if chance.random() < self._faults.killed][: _MOST_KILLS - kills]
            kills += len(to_kill)
            ended = self._race(racing, to_kill, once, chance)
            for name, error in ended:
                killed = isinstance(error, KilledError)
                failures += error is not None and not killed
                if error is not None and (killed or failures < limit):  # Hadoop's client omits the last failure
                    self._report(f"Task Id : {name}, Status : {'KILLED' if killed else 'FAILED'}\nError: {error}")
            if ended[0][1] is None:
                return ended[0][0]
        raise TaskError(f"Task {task.name} failed {limit} times")

    def _race(
        self, racing: list[str], to_kill: list[str], once: Callable[[str, AttemptControl], None], chance: random.Random
    ) -> list[tuple[str, TaskError | None]]:
        """Run several attempts at the same time. Return their names and errors, successful attempts (None) first."""
        controls = {name: AttemptControl() for name in racing}
        self._controls.update(controls.values())
        if self._abandoned:  # the job was abandoned since the last check
            self.abandon()
        timers = [threading.Timer(chance.uniform(0, self._faults.within), controls[name].kill) for name in to_kill]
        starts = [0.0, *(chance.uniform(0, self._faults.within) for _ in racing[1:])]

        def start(name: str, after: float) -> None:
            controls[name].killed_event.wait(after)
            once(name, controls[name])

        ended: list[tuple[str, TaskError | None]] = []
        try:
            with ThreadPoolExecutor(len(racing)) as pool:
                futures: dict[Future[None], str] = {
                    pool.submit(start, name, after): name for name, after in zip(racing, starts, strict=True)
                }
                for timer in timers:
                    timer.start()
                for future in as_completed(futures):
                    ended.append((futures[future], _outcome(future)))
                    if ended[-1][1] is None:
                        for control in controls.values():
                            control.kill()
        finally:
            for timer in timers:
                timer.cancel()
            self._controls.difference_update(controls.values())
        return sorted(ended, key=lambda end: end[1] is not None)


def _outcome(future: "Future[None]") -> TaskError | None:
    try:
        future.result()
    except TaskError as error:
        return error
    return None
