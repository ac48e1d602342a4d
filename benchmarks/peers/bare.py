"""Shoal's jobs without a runner: `python -m benchmarks.peers.bare INPUT OUTPUT`, in one process, task after task.

The difference from this is the overhead of mrjob or Hadoop. Between map and reduce there is one file of records
for each key. Every runner does at least that, so the memory is that of the jobs.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from mrjob.step import MRStep

from corpus.dataset_settings import REFERENCE
from corpus.reading.sources import Inputs
from jobs.dataset import MakeDataset
from jobs.plan import WORK_VARIABLE
from jobs.preparation import prepare_work

_SIZE = Struct("<Q")

Record = tuple[bytes, bytes]


def preprocess(source: Path, output: Path, tasks: int = 1) -> None:
    """Preprocess a raw file to `output`, with at least `tasks` map tasks."""
    prepared = prepare_work(Inputs(files=(str(source),)), REFERENCE)
    with TemporaryDirectory(dir=output) as work:
        plan = prepared.write_plan(work=work, output=str(output), tasks=tasks)
        os.environ[WORK_VARIABLE] = work
        records = Path(work) / "records"
        for number, step in enumerate(MakeDataset([]).steps()):
            lines = [line for path in sorted(Path(plan.tasks).iterdir()) for line in path.open("rb")]
            written = Path(work) / f"records-{number}"
            run_step(step, number, records.open("rb") if number else lines, written, Path(work) / "shuffle")
            written.replace(records)


def run_step(step: MRStep, number: int, lines: Iterable[bytes], written: Path, shuffle: Path) -> None:
    """Run one step of the job: its mapper, if it has one, and its reducer."""
    job = MakeDataset([])
    job.sandbox(stderr=BytesIO())  # its messages are for a runner
    kind = "mapper" if "mapper" in step.description(number) else "reducer"
    read, write = job.pick_protocols(number, kind)[0], job.pick_protocols(number, "reducer")[1]
    records: Iterable[Record] = (read(line.rstrip(b"\n")) for line in lines)
    if kind == "mapper":
        records = job.map_pairs(records, number)
    with written.open("wb") as out:
        for key, value in _reduced(job, records, number, shuffle):
            out.write(write(key, value) + b"\n")


def _reduced(job: Any, mapped: Iterable[Record], number: int, shuffle: Path) -> Iterator[Record]:
    shuffle.mkdir()
    files: dict[bytes, BinaryIO] = {}
    for key, value in mapped:
        if key not in files:
            files[key] = (shuffle / str(len(files))).open("w+b")
        files[key].write(_SIZE.pack(len(value)))
        files[key].write(value)
    yield from job.reduce_pairs(_in_order(files), number)
    for file in files.values():
        file.close()
        Path(file.name).unlink()
    shuffle.rmdir()


def _in_order(files: dict[bytes, BinaryIO]) -> Iterator[Record]:
    for key in sorted(files):
        files[key].seek(0)
        while size := files[key].read(_SIZE.size):
            yield key, files[key].read(*_SIZE.unpack(size))


if __name__ == "__main__":
    preprocess(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
