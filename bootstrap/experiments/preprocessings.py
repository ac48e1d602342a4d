"""Executes the preprocessing runs of an experiment, on this machine or on deployments.

The time is measured from the start of a run until its dataset is finished. Then the dataset is removed, and the
measurement is kept. A stopped run starts again from the beginning. If it continued, the time of its finished steps
would be missing. On this machine, a run is bound to `workers` cores.
"""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bootstrap.experiments.places import LocalMachine, Where
from bootstrap.progress import Bars
from common.errors import ExperimentError, explain_full_disk
from common.files import indented_json
from corpus.dataset_settings import REFERENCE
from corpus.layout import DATASET_NAME
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.compression import DamagedArchiveError, compression
from corpus.reading.inputs.finding import find_files
from corpus.reading.lines import LongLine, split_lines
from corpus.reading.sources import EXPANSION, InputFile, Inputs, digest_of_files
from corpus.reading.storage import open_blocks, writable
from experiments.forecast import workers_of
from experiments.plans.parts import Arm, PlannedRun
from experiments.plans.prices import RunPrice, preprocessing_price, price_of_cores
from experiments.plans.stored import PREPROCESSING
from infra import catalog
from trainer.output.run_files import read_json, write_whole

if TYPE_CHECKING:
    from jobs.merge import MergeResult

_SHARES = ".input"
"""Folder in the output folder with samples of the input."""


class Preprocessings:
    def __init__(self, where: Where, inputs: Sequence[str], output: Path) -> None:
        """Find the input files. Raises DataError if one does not exist."""
        self.where = where
        self._files = find_files(Inputs(files=tuple(inputs)), leave_out=str(output.resolve())).files
        self._output = output
        self.data: str | None = digest_of_files(self._files)
        self._warm = False

    def why_not(self, arm: Arm) -> str:
        """Return why the chosen place cannot execute the arm's runs, or ""."""
        workers, available = arm.local.workers if arm.local else None, self.where.cores
        if workers and available and workers > available:
            return f"it needs {workers} cores, but only {available} are available"
        return self.where.why_not(arm)

    def price(self, run: PlannedRun) -> RunPrice:
        """Return a run's expected time and cost, from measured CPU-seconds and the price list; $0 on this machine."""
        size = (run.arm.share or 1.0) * sum(  # the size of compressed files times their usual compression ratio
            each.size * EXPANSION.get(compression(each.address) or "", 1) for each in self._files
        )
        if isinstance(self.where, LocalMachine):
            return price_of_cores(_workers(run.arm), size)
        return preprocessing_price(self.where.topology(run.arm), size)

    def is_finished(self, run: PlannedRun) -> bool:
        """Return whether the run has already finished."""
        return read_json(run.folder / PREPROCESSING) is not None

    def make(self, run: PlannedRun, bars: Bars) -> None:
        """Execute the run. After an interrupt, the run must start from the beginning."""
        inputs = self._inputs(run.arm)
        shutil.rmtree(run.folder, ignore_errors=True)
        run.folder.mkdir(parents=True)
        merged, seconds, workers = (
            self._here(run, inputs, bars) if isinstance(self.where, LocalMachine) else self._there(run, inputs, bars)
        )
        size = sum(each.size for each in find_files(inputs).files)
        rows = {name: merged.counts[name] for name in ("lines", "distinct", "train", "test")}
        measured = {"seconds": seconds, "bytes": size, "workers": workers, "digest": merged.digest, **rows}
        write_whole(run.folder / PREPROCESSING, indented_json(measured))

    def _here(self, run: PlannedRun, inputs: Inputs, bars: Bars) -> tuple["MergeResult", float, int]:
        """Preprocess on this machine; return the result, the seconds, and the number of cores."""
        from jobs import warm_up
        from jobs.local import preprocess_locally

        if not self._warm:  # imports and compilation must not count in the time of the first run
            warm_up.main()
            self._warm = True
        with _bound(_workers(run.arm)):
            begin = time.monotonic()
            merged = preprocess_locally(inputs, str(run.folder), settings=REFERENCE, progress=bars)
            seconds = time.monotonic() - begin
        (run.folder / DATASET_NAME).unlink()
        return merged, seconds, _workers(run.arm)

    def _there(self, run: PlannedRun, inputs: Inputs, bars: Bars) -> tuple["MergeResult", float, int]:
        from bootstrap.preprocessing.preprocess import LaunchOptions, preprocess_on_deployment

        assert not isinstance(self.where, LocalMachine)
        begin = time.monotonic()
        merged = preprocess_on_deployment(
            self.where.deployment(run.arm),
            inputs,
            settings=REFERENCE,
            max_malformed=DEFAULT_MAX_MALFORMED,
            bars=bars,
            say=bars.note,
            launch=LaunchOptions(force=True),
        )
        seconds = time.monotonic() - begin
        cluster = self.where.topology(run.arm).preprocessing
        assert cluster is not None
        return merged, seconds, sum(count * catalog.find(name).vcpu for name, count in workers_of(cluster))

    def _inputs(self, arm: Arm) -> Inputs:
        if arm.share is None:
            return Inputs(files=tuple(each.address for each in self._files))
        folder = self._output / _SHARES / f"{arm.share:g}"
        return Inputs(files=tuple(_share(each, arm.share, folder, place) for place, each in enumerate(self._files)))


def _workers(arm: Arm) -> int:
    assert arm.local is not None
    assert arm.local.workers is not None
    return arm.local.workers


def _share(file: InputFile, share: float, folder: Path, place: int) -> str:
    """Write an evenly spaced share of a file's lines to a new uncompressed file; return the path of that file."""
    name = PurePosixPath(file.address).name
    if name.endswith(".parquet"):
        raise ExperimentError(
            f"`share` requires files of lines, but {file.address} is a Parquet file; remove `share` from the experiment"
        )
    path = folder / f"{place}-{name[: len(name) - len(compression(name) or '')]}"
    if path.exists():
        return str(path)
    folder.mkdir(parents=True, exist_ok=True)
    with explain_full_disk(folder), writable(str(path)) as partial, partial.open("wb") as to:
        for number, line in enumerate(_lines(file.address)):
            if number == 0 or int((number + 1) * share) > int(number * share):  # the first line can be a header
                to.write(line + b"\n")
    return str(path)


def _lines(address: str) -> Iterator[bytes]:
    """Yield the lines of a file, without newline characters. Skip lines that are too long."""
    try:
        for lines in split_lines(open_blocks(address)):
            if not isinstance(lines, LongLine):
                yield from lines
    except DamagedArchiveError as error:
        raise ExperimentError(
            f"{address} is damaged ({error}); download it again, or remove `share` from the experiment"
        ) from error


@contextmanager
def _bound(workers: int) -> Iterator[None]:
    """Bind this process, and child processes created in the block, to `workers` of its cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[:workers]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
