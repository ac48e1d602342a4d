"""Runs the job on this machine with mrjob's runners, from raw files to `dataset.h5` and `counts.json`.

All other files are in one work folder, which is removed afterwards, even if a job fails. If the process is killed, the
next call with the same output removes the work folder.
"""

import glob
import logging
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import BinaryIO, Protocol

from mrjob.local import LocalMRJobRunner
from mrjob.step import StepFailedException

from common.cores import cores
from common.display import size
from common.errors import DataError, JobError, explain_os_error, is_full_disk
from common.files import require_replaceable
from common.private_folders import temporary_folder
from common.starter import ending_with_this_process
from corpus.dataset import Dataset, open_dataset
from corpus.dataset_settings import DEFAULT, Settings
from corpus.layout import COUNTS_NAME, DATASET_NAME
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs
from corpus.reading.storage import check_writable, join
from jobs.dataset import ENCODE_STEP, STEPS, MakeDataset
from jobs.job import COUNTER
from jobs.merge import MergeResult, read_merge_result
from jobs.plan import PLAN_NAME, Plan
from jobs.preparation import PreparedWork, prepare_work, work_bytes
from jobs.task_server import TaskServer

RUNNERS = ("auto", "local", "inline")

# With less input, starting tasks in other processes takes longer than running them in this process.
_SMALL_BYTES = 64 << 20
CORE_BYTES = 32 << 20
"""Bytes of input for which one more core is used. With smaller tasks, another core would not save time."""

_STEP_STARTS = re.compile("Running step ([0-9]+) of")
_COUNTER_LINE = f"reporter:counter:{','.join(COUNTER)},"
_SORT = ("sort", "--stable", "--key=1,1", "--buffer-size=64M")


class Progress(Protocol):
    """Protocol of a display that shows the progress of the jobs."""

    def stage(self, name: str, total: int) -> None:
        """Start a stage of `total` units of work."""

    def at(self, done: int) -> None:
        """Report that `done` units of the current stage are done."""


class _NoProgress:
    def stage(self, name: str, total: int) -> None:
        """Do nothing."""

    def at(self, done: int) -> None:
        """Do nothing."""


def preprocess_locally(
    inputs: Inputs,
    output: str,
    *,
    settings: Settings | None = None,
    runner: str = "auto",
    max_malformed: float = DEFAULT_MAX_MALFORMED,
    progress: Progress | None = None,
    force: bool = False,
) -> MergeResult:
    """Convert raw files to `output`/dataset.h5 and `output`/counts.json. `output` is a folder or s3://...

    `runner` is `local`, `inline` or `auto`. `local` runs each task in a forked process, at most one per core. `inline`
    runs all tasks in this process. `auto` selects `inline` for jobs with little input, where starting processes would
    take longer, and `local` otherwise. Existing files with these names remain until the new dataset is complete. Raises
    DataError for unusable input, a full disk or, without `force`, a dataset of other data in `output`, and JobError if
    a job fails for another reason.
    """
    # absolute, because each task runs in its own folder
    output = output if is_s3(output) else str(Path(output).resolve())
    check_writable(output)
    prepared = prepare_work(inputs, settings or DEFAULT, max_malformed=max_malformed, leave_out=output)
    if not is_s3(output):
        is_same = partial(_has_settings, prepared=prepared)  # before the work, because it can take hours
        _require_same(Path(output), is_same, "was made with other settings", force=force)
    return run_prepared_work(prepared, output, runner=runner, progress=progress or _NoProgress(), force=force)


def run_prepared_work(
    prepared: PreparedWork, output: str, *, runner: str = "auto", progress: Progress, force: bool = False
) -> MergeResult:
    """Run the job of prepared work. `output` is an absolute path or s3://... Raises the errors of
    `preprocess_locally`."""
    if runner == "auto":
        runner = "inline" if prepared.plain_bytes < _SMALL_BYTES else "local"
    with (
        _work_folder(output) as folder,
        _explained_removal(folder),
        _name_without_patterns(folder) as work,
        TaskServer("jobs.warm_up", work) as server,
    ):
        _check_space(folder, work_bytes(prepared.plain_bytes, prepared.settings))
        # A dataset on S3 is in a folder of its own digest, so it replaces no other dataset.
        target = output if is_s3(output) else str(work / "dataset")
        used = 1 if runner == "inline" else max(1, min(cores(), prepared.plain_bytes // CORE_BYTES))
        plan = prepared.write_plan(work=str(work), output=target, tasks=used)
        temporary = work / "temporary"
        temporary.mkdir()
        with _Stages(progress, plan, prepared.plain_bytes, temporary).shown():
            _run_job(plan, runner, used, temporary, server)
        merged = prepared.with_warnings(read_merge_result(plan.summary))
        return merged if is_s3(output) else _publish(merged, Path(target), Path(output), force=force)


def _publish(merged: MergeResult, made: Path, output: Path, *, force: bool) -> MergeResult:
    """Move the files of a dataset to the output folder, counts.json first. Raises DataError if they would replace a
    dataset of other data without `force`."""
    _require_same(output, lambda existing: existing.digest == merged.digest, "has other data", force=force)
    with explain_os_error(DataError, f"cannot write to {output}", "choose another --output"):
        for name in (COUNTS_NAME, DATASET_NAME):
            (made / name).replace(output / name)
    return replace(merged, dataset=str(output / DATASET_NAME))


def _has_settings(existing: Dataset, prepared: PreparedWork) -> bool:
    chosen = replace(prepared.settings, stopwords=existing.settings.stopwords)  # the words themselves are compared
    return (chosen, prepared.stopwords) == (existing.settings, existing.stopwords)


def _require_same(output: Path, is_same: Callable[[Dataset], bool], difference: str, *, force: bool) -> None:
    """Raise DataError if the output folder has a dataset for which `is_same` is false, and without `force`."""
    path = output / DATASET_NAME
    if force or not path.exists():
        return
    try:
        with open_dataset(path) as existing:
            difference = "" if is_same(existing) else difference
    except DataError:
        difference = "is not a dataset that this version can read"
    if difference:
        require_replaceable(f"{path} {difference}", DataError, force=force)


@contextmanager
def _work_folder(output: str) -> Iterator[Path]:
    """Yield a new work folder, inside `output` if `output` is local, otherwise a temporary folder."""
    if is_s3(output):
        with ExitStack() as made:
            with explain_os_error(DataError, "cannot create a temporary folder", "set TMPDIR to an existing folder"):
                folder = made.enter_context(temporary_folder("shoal-work-"))
            yield folder
        return
    home = Path(output)
    was_there = home.exists()
    try:
        with ExitStack() as made:
            with explain_os_error(DataError, f"cannot write to {home}", "choose another --output"):
                home.mkdir(parents=True, exist_ok=True)
                folder = made.enter_context(temporary_folder(".shoal-work-", home))
            yield folder
    finally:
        if not was_there:
            with suppress(OSError):  # not empty
                home.rmdir()


@contextmanager
def _explained_removal(folder: Path) -> Iterator[None]:
    """If the block fails because another program removed or moved the folder, raise DataError with this reason."""
    created = folder.stat().st_ino
    try:
        yield
    except Exception as error:
        with suppress(FileNotFoundError):
            if folder.stat().st_ino == created:  # else mrjob has created the folder again
                raise
        raise DataError(
            f"the work folder in {folder.parent} was removed, moved or unmounted during the preprocessing; start again"
        ) from error


def _run_job(plan: Plan, runner: str, cores: int, temporary: Path, server: TaskServer) -> None:
    """Run the job on this machine. Raises DataError or JobError with the reason of a failed task."""
    sort = shlex.join(ending_with_this_process(*_SORT))
    job = MakeDataset(
        [
            f"--runner={runner}",
            f"--output-dir={plan.result}",
            f"--local-tmp-dir={temporary}",
            "--no-conf",
            *([f"--sort-bin={sort}", f"--num-cores={cores}"] if runner == "local" else []),
            join(plan.work, PLAN_NAME),
        ]
    )
    job.local_runner = LocalRunner
    with job.make_runner() as running:
        running.server = server
        try:
            running.run()
        except DataError:
            raise
        except Exception as error:
            raise _task_error(plan, error, temporary) from error


class LocalRunner(LocalMRJobRunner):
    """Runner that passes a job's tasks to `server`, at most `num_cores` at once, and stops all tasks if one fails.

    Do not use mrjob's `multiprocessing.Pool`, because an idle worker holds the pool's lock. If Ctrl-C stops that
    worker, the pool waits for the lock forever.
    """

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
            reason = "its process was killed, as the operating system does when memory is full; run the command again"
            raise StepFailedException(step_desc=name, reason=reason)


class _Stages(logging.Handler):
    """Shows the steps of the job as stages. mrjob logs the start of each step, and tasks report what they have read."""

    def __init__(self, progress: Progress, plan: Plan, plain_bytes: int, temporary: Path) -> None:
        super().__init__()
        self._progress, self._plan, self._plain_bytes, self._temporary = progress, plan, plain_bytes, temporary
        self._kind = ""
        """Kind of the tasks that report their progress, or "" for none."""

    def emit(self, record: logging.LogRecord) -> None:
        """Start the stage of a step."""
        if started := _STEP_STARTS.match(record.getMessage()):
            number = int(started[1]) - 1
            self._step = number
            total = self._plain_bytes if number == 0 else _size_of(self._plan.texts) if number == ENCODE_STEP else 0
            self._kind = {0: "mapper", ENCODE_STEP: "reducer"}.get(number, "")
            self._progress.stage(STEPS[number], total)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the progress of the job that runs in this context."""
        log, done = logging.getLogger("mrjob"), Event()
        watcher = Thread(target=self._watch, args=(done,), daemon=True)
        before = log.level, log.propagate
        log.addHandler(self)
        log.setLevel(logging.INFO)
        log.propagate = False  # mrjob's messages are for its own command line
        watcher.start()
        try:
            yield
        finally:
            log.removeHandler(self)
            log.setLevel(before[0])
            log.propagate = before[1]
            done.set()
            watcher.join()

    def _watch(self, done: Event) -> None:
        while not done.wait(0.3):
            if not self._kind:
                continue
            # mrjob might remove folders at the same time, which `glob` ignores.
            steps = self._temporary.glob(f"*/step/{self._step:03d}")
            for step in steps:
                if self._kind == "mapper" and (step / "reducer").exists():
                    self._kind = ""
                    self._progress.stage(f"{STEPS[self._step]}: sort and reduce", 0)
                else:
                    self._progress.at(sum(map(_reported_bytes, step.glob(f"{self._kind}/*/stderr"))))


def _size_of(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).iterdir())


def _reported_bytes(stderr: Path) -> int:
    try:
        lines = stderr.read_text("utf-8", "replace").splitlines()
    except OSError:
        return 0
    return sum(int(line.rpartition(",")[2]) for line in lines if line.startswith(_COUNTER_LINE))


def _task_error(plan: Plan, error: Exception, temporary: Path) -> Exception:
    """Return an error that states why the job failed: the sentence of a task, or the last line of its traceback."""
    if Path(plan.failure).exists():
        return DataError(Path(plan.failure).read_text("utf-8"))
    last = str(error)
    for stderr in sorted(temporary.rglob("stderr")):
        lines = [line for line in stderr.read_text("utf-8", "replace").splitlines() if line.strip()]
        if any(line.startswith("Traceback ") for line in lines):
            last = lines[-1]
    if is_full_disk(error) or "No space left" in last:
        return DataError("no space left on the device of --output; free some space, or choose a different --output")
    return JobError(f"preprocessing failed: {last}")


@contextmanager
def _name_without_patterns(folder: Path) -> Iterator[Path]:
    """Yield a path to `folder` that has no `*`, `?` or `[`, because mrjob would read such a path as a pattern."""
    if glob.escape(str(folder)) == str(folder):
        yield folder
        return
    with temporary_folder("shoal-link-") as home:
        link = home / "work"
        link.symlink_to(folder)
        yield link


def _check_space(work: Path, needed: int) -> None:
    free = shutil.disk_usage(work).free
    if free < needed:
        raise DataError(
            f"preprocessing needs about {size(needed)} in {work.parent}, but only {size(free)} are free; free some "
            "space, or choose a different --output"
        )
