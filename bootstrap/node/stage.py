"""Copy a run's data to this node: `python -m bootstrap.node.stage REQUEST STORE PROGRESS [--ahead]`.

REQUEST is a file with the run's request, and STORE is the address of the store with the run's documents. The program
writes the number of text bytes read so far to the file PROGRESS. With a shared folder, the first node runs the program
before all other nodes do. If the node has its own disks, the program copies the dataset to these disks. With --ahead,
the program copies only the dataset, before the node joins an attempt.
"""

import argparse
import json
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from bootstrap.node.documents import RunRequest
from bootstrap.node.folder import open_store
from bootstrap.node.machine import Machine, this_machine
from bootstrap.node.store import Store
from common import names
from common.errors import DataError
from common.files import whole_file
from common.progress import ProgressReporter, reporting
from common.starter import end_with_starter
from corpus.layout import DATASET_NAME
from corpus.raw_texts import TextProgress
from corpus.reading import s3
from corpus.reading.storage import write_text
from corpus.stream.stream_settings import write_settings
from trainer.output.run_files import CHECKPOINTS, RECORD, STREAM

_REPORT_SECONDS = 2.0
_CHECKPOINT = re.compile(rf"{CHECKPOINTS}/step-[0-9]{{9,18}}\.pt")


def stage(request: RunRequest, machine: Machine, channel: Store, publish: Callable[[TextProgress], None]) -> None:
    """Copy a run's data to this node. For a run that continues, also copy its record and checkpoints. Existing files
    are kept.

    `publish` is called with the progress of reading texts. Raises DataError, OSError and the errors of S3.
    """
    for folder in (machine.run(request), machine.data(request).parent, machine.cache):
        folder.mkdir(parents=True, exist_ok=True)
    machine.cache.chmod(0o700)
    _copy_results(request, machine.run(request), channel)
    if request.stream is not None:
        stream = machine.data(request)
        write_settings(stream, request.stream)
        if (machine.run(request) / CHECKPOINTS).is_dir():
            from trainer.embeddings.stream_rows import restore_stream  # imports torch, which takes long

            restore_stream(machine.run(request), stream)
    elif request.texts is not None:
        _encode(request, machine, publish)
    else:
        _copy_dataset(request, machine, channel)


def _copy_dataset(request: RunRequest, machine: Machine, channel: Store) -> None:
    if not (data := machine.data(request)).exists():
        address = str(request.dataset)
        holder, key = (open_store(address), s3.place_of(address).key) if s3.is_s3(address) else (channel, address)
        holder.get(key, data)


def _copy_results(request: RunRequest, run: Path, channel: Store) -> None:
    """Copy the record and the checkpoints of a run that continues, unless they exist on this node."""
    folder = f"{names.RUNS}{request.run}/"
    started = (run / RECORD).exists()
    for name in [key.removeprefix(folder) for key in channel.list(folder)]:
        wanted = _CHECKPOINT.fullmatch(name) or (name in (RECORD, STREAM) and not started)
        if wanted and not (run / name).exists():
            channel.get(folder + name, run / name)


def _encode(request: RunRequest, machine: Machine, publish: Callable[[TextProgress], None]) -> None:
    """Encode texts as a dataset and copy it to the shared folder, or copy the shared dataset if it exists.

    If the node has its own disks, it encodes the texts on these disks.
    """
    assert request.texts is not None
    data, shared = machine.data(request), machine.shared_data(request)
    for left in data.parent.glob("texts-*.parts"):  # left by a killed process
        shutil.rmtree(left)
    if not data.exists() and not shared.exists():
        reading = _Reading(publish)
        parts = data.with_name(f"{data.stem}.parts")
        parts.mkdir()
        try:
            from jobs.training import make_training_dataset  # not at the top, because numba is slow to load

            with reporting(reading):
                counts = make_training_dataset(request.texts, parts, option="instance type").counts
            (parts / DATASET_NAME).rename(data)
        finally:
            shutil.rmtree(parts, ignore_errors=True)
        publish(TextProgress(read=reading.bytes, **{name: counts[name] for name in ("lines", "malformed", "empty")}))
    for source, there in ((data, shared), (shared, data)):
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(there) as partial:
                shutil.copyfile(source, partial)


class _Reading(ProgressReporter):
    """Reporter that publishes the progress of the first stage, which reads the texts."""

    def __init__(self, publish: Callable[[TextProgress], None]) -> None:
        self.bytes = 0
        self._publish, self._stages, self._published = publish, 0, time.monotonic()

    def stage(self, *_: object, **__: object) -> None:
        self._stages += 1

    def at(self, done: int) -> None:
        if self._stages == 1:
            self.bytes = done
            if time.monotonic() - self._published >= _REPORT_SECONDS:
                self._publish(TextProgress(read=done))
                self._published = time.monotonic()


def main() -> int:
    parser = argparse.ArgumentParser(description="Copy a run's data to this node.")
    for name, kind in (("request", Path), ("store", str), ("progress", Path)):
        parser.add_argument(name, type=kind)
    parser.add_argument("--ahead", action="store_true", help="copy only the dataset, before the node takes part")
    arguments = parser.parse_args()
    # SystemExit runs the same cleanup as an error.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    end_with_starter()

    def publish(progress: TextProgress) -> None:
        write_text(str(arguments.progress), json.dumps(asdict(progress)))

    try:
        request = RunRequest.from_json(arguments.request.read_text("utf-8"))
        with s3.explained_errors(arguments.store, "read"):
            machine, channel = this_machine(), open_store(arguments.store)
            if arguments.ahead:
                machine.data(request).parent.mkdir(parents=True, exist_ok=True)
                _copy_dataset(request, machine, channel)
            else:
                stage(request, machine, channel, publish)
    except (DataError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
