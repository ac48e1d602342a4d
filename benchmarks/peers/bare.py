"""Shoal's jobs without a runner: `python -m benchmarks.peers.bare INPUT OUTPUT`, in one process, task after task.

The difference from this is the overhead of mrjob, Hadoop or Spark. Between map and reduce there is one file of records
for each key. Every runner does at least that, so the memory is that of the jobs.
"""

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from corpus.dataset_settings import REFERENCE
from corpus.reading.sources import Inputs
from jobs.preparation import prepare_work
from jobs.steps import JobStep

_SIZE = Struct("<Q")

Record = tuple[bytes, bytes]


def preprocess(source: Path, output: Path, tasks: int = 1) -> None:
    """Preprocess a raw file to `output`, with at least `tasks` map tasks."""
    prepared = prepare_work(Inputs(files=(str(source),)), REFERENCE)
    with TemporaryDirectory(dir=output) as work:
        plan = prepared.plan(work=work, output=str(output), tasks=tasks)
        for address, content in plan.task_files().items():
            Path(address).parent.mkdir(exist_ok=True)
            Path(address).write_bytes(content)
        for step in plan.steps():
            if isinstance(step, JobStep):
                run_job(step, Path(work) / "shuffle")
            else:
                import_module(step.module).run(step.arguments)


def run_job(step: JobStep, shuffle: Path) -> None:
    """Run one job. Its output is `part-00000` in its output folder."""
    job_class = getattr(import_module(step.module), step.job)
    job = job_class([*step.arguments, *(f"{option}={path}" for option, path in step.files.items())])
    job.sandbox(stderr=BytesIO())  # its messages are for a runner
    lines = (line for folder in step.inputs for path in sorted(Path(folder).iterdir()) for line in path.open("rb"))
    read, write = job.pick_protocols(0, "mapper")[0], job.pick_protocols(0, "reducer" if step.reduces else "mapper")[1]
    mapped: Iterable[Record] = job.map_pairs((read(line.rstrip(b"\n")) for line in lines), 0)
    Path(step.output).mkdir()
    with (Path(step.output) / "part-00000").open("wb") as out:
        for key, value in _reduced(job, mapped, shuffle) if step.reduces else mapped:
            out.write(write(key, value) + b"\n")
    Path(step.done_file).touch()


def _reduced(job: Any, mapped: Iterable[Record], shuffle: Path) -> Iterator[Record]:
    shuffle.mkdir()
    files: dict[bytes, BinaryIO] = {}
    for key, value in mapped:
        if key not in files:
            files[key] = (shuffle / str(len(files))).open("w+b")
        files[key].write(_SIZE.pack(len(value)))
        files[key].write(value)
    yield from job.reduce_pairs(_in_order(files), 0)
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
