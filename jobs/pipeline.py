"""The jobs in order on this machine: raw files to `dataset.h5` and `counts.json`, by mrjob's runners.

The easy mistake is to leave something behind: everything but the two results lives in one folder beside
them, which is gone afterwards, whatever happened.
"""

import glob
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Event, Thread
from typing import Protocol

import psutil

from corpus.dataset import is_full_disk
from corpus.errors import DataError
from corpus.settings import Settings
from corpus.text import load_stopwords
from jobs.choose import DEFAULT_MAX_MALFORMED
from jobs.errors import JobError
from jobs.job import COUNTER
from jobs.merge import Merged, read_merged
from jobs.ranges import COMPRESSED, cut
from jobs.steps import JobStep, Plan, plain_size
from jobs.task import FAILURE_PREFIX

# What passes between the jobs is on disk up to four times at once: mapped, sorted, split, reduced.
_WORK_PER_INPUT = 4
# How files begin that are packed, by the ending that their names should have.
_BEGINNINGS = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh",
    ".zip": b"PK\x03\x04",
    ".xz": b"\xfd7zX",
    ".zst": b"\x28\xb5\x2f\xfd",
}
# What mrjob has to say about a failure becomes the text of a JobError.
logging.getLogger("mrjob").setLevel(logging.CRITICAL)
_COUNTER_LINE = f"reporter:counter:{','.join(COUNTER)},"


class Progress(Protocol):
    """What shows how far the work is."""

    def stage(self, name: str, total: int) -> None:
        """A new stage begins, with `total` units of work."""

    def at(self, done: int) -> None:
        """So many units of the stage are done."""


class Silent:
    """Shows nothing."""

    def stage(self, name: str, total: int) -> None:
        """Ignored."""

    def at(self, done: int) -> None:
        """Ignored."""


def preprocess(
    inputs: Sequence[Path],
    output: Path,
    *,
    settings: Settings | None = None,
    runner: str = "local",
    max_malformed: float = DEFAULT_MAX_MALFORMED,
    progress: Progress | None = None,
) -> Merged:
    """Raw files, or folders of them, to `output`/dataset.h5 and `output`/counts.json.

    `runner` is mrjob's: `local` (a process a task, all cores) or `inline` (this process). What was in `output`
    under these names stays until the new dataset is whole. Raises DataError for input that cannot be used or
    a full disk, and JobError when a job fails otherwise.
    """
    settings = settings or Settings()
    progress = progress or Silent()
    load_stopwords(settings.stopwords)
    output = output.resolve()  # mrjob's tasks run in folders of their own
    files = input_files(inputs, leave_out=output)
    input_bytes = sum(plain_size(path.name, path.stat().st_size) for path in files)
    with _work_folder(output) as work:
        _check_space(output, input_bytes)
        ranges = work / "ranges"
        cores = len(os.sched_getaffinity(0))
        ranges.write_bytes(b"".join(part.line() + b"\n" for part in cut(files, 4 * cores)))
        if settings.stopwords not in ("nltk", "none"):
            settings = replace(settings, stopwords=str(Path(settings.stopwords).resolve()))
        plan = Plan(
            inputs=(str(ranges),),
            work=str(work),
            output=str(output),
            settings=settings,
            max_malformed=max_malformed,
            input_bytes=input_bytes,
        )
        for step in plan.steps():
            if isinstance(step, JobStep):
                raw = step.inputs == plan.inputs
                read = files if raw else [path for folder in step.inputs for path in Path(folder).iterdir()]
                progress.stage(step.name, sum(path.stat().st_size for path in read))
                _run_job(step, ("--ranges",) if raw else (), runner, work / "tasks", progress)
            else:
                progress.stage(step.name, 0)
                import_module(step.module).run(step.arguments)
        return read_merged(plan.summary)


def input_files(inputs: Sequence[Path], leave_out: Path | None = None) -> list[Path]:
    """The files that are meant: those given, and those in the folders given, without hidden ones; absolute paths.

    Nothing below `leave_out`, the folder of the results, is taken from a folder. Raises DataError for what does not
    exist, cannot be read, holds nothing, or is packed in a way that its name does not tell.
    """
    files: list[Path] = []
    for given in inputs:
        if given.is_dir():
            inside = [path for path in sorted(given.rglob("*")) if path.is_file() and not _is_hidden(path, given)]
            taken = [path for path in inside if leave_out is None or leave_out not in path.resolve().parents]
            if not taken:
                raise DataError(f"the folder {given} holds no files; give one with review files")
            files += taken
        elif given.is_file():
            files.append(given)
        elif given.exists():
            raise DataError(f"{given} is no regular file; write what it holds to one, and give that")
        else:
            raise DataError(f"{given}: no such file; check the path")
    for path in files:
        _check_file(path)
    files = [path.resolve() for path in files]
    if len(set(files)) < len(files):
        twice = next(path for path in files if files.count(path) > 1)
        raise DataError(f"{twice} is given twice; name each file once")
    return files


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _check_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            first = file.read(4)
        str(path).encode("utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeEncodeError:
        raise DataError(f"the name of {os.fsencode(path)!r} is no UTF-8; rename the file") from None
    if not first:
        raise DataError(f"{path} is empty; leave it out, or download it again")
    for suffix, beginning in _BEGINNINGS.items():
        if first.startswith(beginning) and path.suffix != suffix:
            remedy = f"rename it to end in {suffix}" if suffix in COMPRESSED else "unpack it first"
            raise DataError(f"{path} holds {suffix.lstrip('.')} data, but its name does not say so; {remedy}")


def _run_job(step: JobStep, extra: tuple[str, ...], runner: str, tasks: Path, progress: Progress) -> None:
    """One MRJob on this machine; what its tasks say on standard error is the progress."""
    job_class = getattr(import_module(step.module), step.job)
    files = [f"{option}={path}" for option, path in step.files.items()]
    tasks.mkdir(exist_ok=True)
    job = job_class(
        [
            f"--runner={runner}",
            f"--output-dir={step.output}",
            f"--local-tmp-dir={tasks}",
            "--no-conf",
            # Its set-up script leaves a lock file in /tmp, and fails in folders with a space in their name.
            "--no-bootstrap-mrjob",
            *extra,
            *step.arguments,
            *files,
            *step.inputs,
        ]
    )
    done = Event()
    watcher = Thread(target=_watch, args=(tasks, done, progress), daemon=True)
    watcher.start()
    try:
        with job.make_runner() as running:
            try:
                running.run()
            except DataError:
                raise
            except Exception as error:
                raise _explained(step, error, tasks) from error
    finally:
        done.set()
        watcher.join()


def _watch(tasks: Path, done: Event, progress: Progress) -> None:
    while not done.wait(0.3):
        progress.at(sum(_reported(path) for path in tasks.rglob("stderr")))


def _reported(stderr: Path) -> int:
    try:
        lines = stderr.read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.rpartition(",")[2]) for line in lines if line.startswith(_COUNTER_LINE))


def _explained(step: JobStep, error: Exception, tasks: Path) -> Exception:
    """What a task left on its standard error as the reason, or else the last thing that it said."""
    last = str(error)
    for stderr in sorted(tasks.rglob("stderr")):
        lines = [line for line in stderr.read_text("utf-8", "replace").splitlines() if line.strip()]
        for line in lines:
            if line.startswith(FAILURE_PREFIX):
                return DataError(line.removeprefix(FAILURE_PREFIX))
        if any(line.startswith("Traceback ") for line in lines):
            last = lines[-1]
    if is_full_disk(error) or "No space left" in last:
        return DataError("no space left on the device that holds --output; free some, or choose another --output")
    return JobError(f"the job '{step.name}' failed: {last}")


@contextmanager
def _work_folder(output: Path) -> Iterator[Path]:
    """A folder beside the results, gone afterwards; those that a killed run left are removed first."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        for left in output.glob(".work-*"):
            if not psutil.pid_exists(int(left.name.split("-")[1])):
                shutil.rmtree(left, ignore_errors=True)
        work = Path(mkdtemp(prefix=f".work-{os.getpid()}-", dir=output))
    except OSError as error:
        raise DataError(f"cannot write to {output}: {error.strerror}; choose another --output") from error
    try:
        with _name_without_patterns(work) as name:
            yield name
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _name_without_patterns(folder: Path) -> Iterator[Path]:
    """A name for the folder without `*`, `?` and `[`, in which mrjob would see a pattern."""
    if glob.escape(str(folder)) == str(folder):
        yield folder
        return
    with TemporaryDirectory(prefix="shoal-") as home:
        link = Path(home) / "work"
        link.symlink_to(folder)
        yield link


def _check_space(output: Path, input_bytes: int) -> None:
    needed = _WORK_PER_INPUT * input_bytes
    free = shutil.disk_usage(output).free
    if free < needed:
        raise DataError(
            f"the work needs about {needed / 1e6:,.0f} MB in {output}, and {free / 1e6:,.0f} MB are free; "
            "free some, or choose another --output"
        )
