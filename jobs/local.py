"""Makes a dataset on this machine: the functions of `jobs.dataset` in threads of this process.

The functions spend most of their time in compiled code, hashing and decompression, which release the GIL. Threads need
no runner, no imports of child processes, and no records in text form.

All files are in one work folder, which is removed afterwards, even if a step fails. If the process is killed, the next
call with the same output removes the work folder.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from ctypes import CDLL
from dataclasses import replace
from functools import partial
from pathlib import Path
from struct import Struct
from tempfile import gettempdir
from threading import Lock
from typing import Any

from common.cores import cores
from common.display import size
from common.errors import DataError, explain_full_disk, explain_os_error
from common.files import require_replaceable
from common.private_folders import temporary_folder
from common.progress import reporter
from corpus.dataset import Dataset, DatasetWriter, open_dataset
from corpus.dataset_settings import DEFAULT, Settings
from corpus.layout import COUNTS_NAME, DATASET_NAME
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.ranges import cut_into_tasks
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs, Range, Source
from corpus.reading.storage import check_writable, identity_of
from corpus.reading.tally import Tally
from jobs.choose import VocabularyChoice, choose_vocabulary
from jobs.encode import Encoder
from jobs.merge import MergeResult, make_dataset
from jobs.plan import Plan
from jobs.preparation import PreparedWork, prepare_work, work_bytes
from jobs.records import Arrays, pack_arrays, unpack_arrays
from jobs.texts import count_words, read_texts, unite_texts
from jobs.words import WordCounts

CORE_BYTES = 32 << 20
"""Bytes of input for which one more core is used. With smaller tasks, another core would not save time."""
_SIZE = Struct("<Q")
_PROGRESS_SECONDS = 0.2


def preprocess_locally(
    inputs: Inputs,
    output: str,
    *,
    settings: Settings | None = None,
    max_malformed: float = DEFAULT_MAX_MALFORMED,
    force: bool = False,
) -> MergeResult:
    """Convert raw files to `output`/dataset.h5 and `output`/counts.json. `output` is a folder or s3://...

    Existing files with these names remain until the new dataset is complete. Raises DataError for unusable input, a
    full disk or, without `force`, a dataset of other data in `output`.
    """
    output = output if is_s3(output) else str(Path(output).resolve())
    check_writable(output)
    prepared = prepare_work(inputs, settings or DEFAULT, max_malformed=max_malformed, leave_out=output)
    if not is_s3(output):
        is_same = partial(_has_settings, prepared=prepared)  # before the work, because it can take hours
        _require_same(Path(output), is_same, "was made with other settings", force=force)
    return run_prepared_work(prepared, output, force=force)


def run_prepared_work(
    prepared: PreparedWork, output: str, *, force: bool = False, option: str = "--output"
) -> MergeResult:
    """Make the dataset of prepared work. `output` is an absolute path or s3://...

    `option` is the command-line option that messages about `output` name. Raises the errors of `preprocess_locally`.
    """
    with _work_folder(output, option) as work, _explained_failure(work):
        _check_space(work, work_bytes(prepared.plain_bytes, prepared.settings), option)
        # A dataset on S3 is in a folder of its own digest, so it replaces no other dataset.
        target = output if is_s3(output) else str(work / "dataset")
        plan = prepared.plan(work=str(work), output=target)
        threads = max(1, min(cores(), prepared.plain_bytes // CORE_BYTES))
        with explain_full_disk(work, option):
            made = _Steps(plan, threads, option).run(prepared)
        merged = prepared.with_warnings(made)
        return merged if is_s3(output) else _publish(merged, Path(target), Path(output), force=force, option=option)


class _Steps:
    """Steps of one plan. Worker threads run them; the calling thread shows their progress and writes the dataset."""

    def __init__(self, plan: Plan, threads: int, option: str) -> None:
        self._plan, self._threads, self._option = plan, threads, option
        self._work = Path(plan.work)
        self._tally = Tally()
        self._lock = Lock()
        self._done = 0
        self._stopped = False

    def run(self, prepared: PreparedWork) -> MergeResult:
        """Run all steps."""
        with ThreadPoolExecutor(self._threads, "step") as pool:
            texts, counts = _Spool(self._work / "texts"), _Spool(self._work / "counts")
            self._stage("deduplicate", prepared.plain_bytes)
            tasks = cut_into_tasks(prepared.sources, self._threads)
            self._finish([pool.submit(self._read, task, texts) for task in tasks])
            _require_unchanged(prepared.sources)
            self._stage("count words", texts.bytes)
            rows = self._work / "rows"
            rows.mkdir()
            self._finish([pool.submit(self._unite, texts, counts, rows)])
            self._stage("choose vocabulary")
            return self._encode(self._choose(counts), sorted(rows.iterdir()))

    def _stage(self, name: str, total: int = 0) -> None:
        """Start a stage. The C library first returns the freed memory of threads, which it would otherwise keep."""
        with suppress(AttributeError):  # not glibc
            CDLL(None).malloc_trim(0)
        reporter().stage(name, total, "B")

    def _read(self, task: Iterable[Range], texts: "_Spool") -> None:
        """Read the reviews of a task."""
        tally = Tally()
        for part, block in read_texts(task, self._plan, tally, self._report):
            texts.add(part, block)
        with self._lock:
            for key, value in tally.records():
                self._tally.add_records(key, [value])

    def _unite(self, texts: "_Spool", counts: "_Spool", rows: Path) -> None:
        """Unite the texts of each part, and count their words. Only one part at a time is in memory."""
        for part in texts.numbers:
            before = texts.path(part).stat().st_size
            self._unite_part(texts.take(part), counts, rows / f"{part:04x}")
            self._report(before)

    def _unite_part(self, blocks: Iterable[Arrays], counts: "_Spool", rows: Path) -> None:
        united = unite_texts(blocks, self._plan)
        with rows.open("wb") as file:
            file.writelines(pack_arrays(united.rows))
        for bucket, block in count_words(united, self._plan):
            counts.add(bucket, block)
        self._tally.counts.update(united.counts)

    def _choose(self, counts: "_Spool") -> VocabularyChoice:
        words = WordCounts(self._plan.settings.vocabulary_size)
        for bucket in counts.numbers:
            words.add(counts.take(bucket))
        return choose_vocabulary(words.candidates, self._plan, self._tally)

    def _encode(self, choice: VocabularyChoice, parts: Sequence[Path]) -> MergeResult:
        """Write the rows of all parts to the dataset."""
        self._stage("encode", sum(part.stat().st_size for part in parts))

        def append(writer: DatasetWriter) -> None:
            encoder, done = Encoder(self._plan, choice), 0
            for part in parts:
                done += part.stat().st_size
                with encoder.part(part) as rows:
                    rows.append_to(writer, self._tally)
                part.unlink()
                reporter().at(done)

        return make_dataset(self._plan, choice, self._tally, append, option=self._option)

    def _finish(self, started: Sequence[Future[Any]]) -> None:
        """Show the progress of calls until all have returned. If one fails, stop the others, and raise its error."""
        self._done = 0
        pending = set(started)
        try:
            while pending:
                finished, pending = wait(pending, _PROGRESS_SECONDS, FIRST_EXCEPTION)
                for each in finished:
                    each.result()
                reporter().at(self._done)
        except BaseException:
            self._stopped = True
            for each in pending:
                each.cancel()
            raise

    def _report(self, done: int) -> None:
        """Count finished units of the current stage. Raises _StoppedError if another call has failed."""
        if self._stopped:
            raise _StoppedError
        with self._lock:
            self._done += done


def _require_unchanged(sources: Iterable[Source]) -> None:
    """Raise DataError if a file changed after its inspection."""
    for source in sources:
        if identity_of(source.address) != source.identity:
            raise DataError(f"{source.address} changed after the command started; run the same command again")


class _StoppedError(Exception):
    """The calling thread no longer waits for this call."""


class _Spool:
    """Blocks of arrays on disk, in one file for each number."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._lock = folder, Lock()

    @property
    def numbers(self) -> list[int]:
        """Numbers that have blocks, sorted."""
        return sorted(int(path.name, 16) for path in self._folder.iterdir())

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self._folder.iterdir())

    def path(self, number: int) -> Path:
        return self._folder / f"{number:04x}"

    def add(self, number: int, block: Arrays) -> None:
        """Add a block. Several threads may add blocks."""
        pieces = pack_arrays(block)
        length = sum(memoryview(piece).nbytes for piece in pieces)
        with self._lock, self.path(number).open("ab") as file:
            file.write(_SIZE.pack(length))
            file.writelines(pieces)

    def take(self, number: int) -> Iterator[Arrays]:
        """Yield the blocks of a number, and remove their file."""
        path = self.path(number)
        with path.open("rb") as file:
            while header := file.read(_SIZE.size):
                yield unpack_arrays(file.read(*_SIZE.unpack(header)))
        path.unlink()


def _publish(merged: MergeResult, made: Path, output: Path, *, force: bool, option: str) -> MergeResult:
    """Move the files of a dataset to the output folder, counts.json first. Raises DataError if they would replace a
    dataset of other data without `force`."""
    _require_same(output, lambda existing: existing.digest == merged.digest, "has other data", force=force)
    with explain_os_error(DataError, f"cannot write to {output}", f"choose another {option}"):
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
def _work_folder(output: str, option: str) -> Iterator[Path]:
    """Yield a new work folder, inside `output` if `output` is local, otherwise in the system's temporary folder."""
    home, advice = Path(output), f"choose another {option}"
    if is_s3(output):
        home, advice = Path(gettempdir()), "set TMPDIR to another folder"
    was_there = home.exists()
    try:
        with ExitStack() as made:
            with explain_os_error(DataError, f"cannot write to {home}", advice):
                home.mkdir(parents=True, exist_ok=True)
                folder = made.enter_context(temporary_folder(".shoal-work-", home))
            yield folder
    finally:
        if not was_there:
            with suppress(OSError):  # not empty
                home.rmdir()


@contextmanager
def _explained_failure(folder: Path) -> Iterator[None]:
    """Convert an OSError of the block to a DataError. If another program removed or moved the work folder, raise a
    DataError with this reason."""
    created = folder.stat().st_ino
    try:
        with explain_os_error(DataError, "preprocessing failed", f"check the disk of {folder.parent}, and start again"):
            yield
    except Exception as error:
        with suppress(FileNotFoundError):
            if folder.stat().st_ino == created:
                raise
        raise DataError(
            f"the work folder in {folder.parent} was removed, moved or unmounted during the preprocessing; start again"
        ) from error


def _check_space(work: Path, needed: int, option: str) -> None:
    free = shutil.disk_usage(work).free
    if free < needed:
        raise DataError(
            f"preprocessing needs about {size(needed)} in {work.parent}, but only {size(free)} are free; free some "
            f"space, or choose a different {option}"
        )
