"""How fast rows are loaded, and how fast a rank reads them: in memory, and unpacked on the disk of its machine.

    python -m benchmarks reading [--rows 2000000] [--runs 3]

Rows are loaded from the packed dataset into memory, onto the disk, and again where another run left them. They are read
as all global batches of an epoch, as a rank alone takes them: from memory, from a disk whose files are in the kernel's
cache, and from the disk after the kernel was asked to drop them. The dataset itself is in the kernel's cache.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch

from benchmarks.record import Log
from benchmarks.rows import write_rows
from trainer.classification.data import TextData, load_data
from trainer.order import BatchOrder

_BATCH = 8192


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks reading", description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="to train on (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log("reading")
    loading: dict[str, list[float]] = {}
    reading: dict[str, list[float]] = {}
    with TemporaryDirectory(dir="/var/tmp") as name:
        dataset = Path(name) / "rows.h5"
        write_rows(dataset, options.rows)
        for run in range(options.runs):
            cache = Path(name) / f"{run}"
            for where, rows_in in (("memory", "memory"), ("disk", "disk"), ("disk, again", "disk")):
                start = time.perf_counter()
                data = load_data(dataset, rows_in=rows_in, cache=cache)
                loading.setdefault(where, []).append(time.perf_counter() - start)
                if where != "disk":
                    reading.setdefault(where, []).append(_epoch(data, run))
                del data  # the kernel does not drop files that are mapped
            _forget(cache)
            data = load_data(dataset, rows_in="disk", cache=cache)
            reading.setdefault("disk, dropped by the kernel", []).append(_epoch(data, run))
            log.say(f"{run}: {loading} {reading}")
    log.table(
        ["rows to load into", "seconds"], [[where, f"{median(seconds):.1f}"] for where, seconds in loading.items()]
    )
    log.table(
        ["rows read from", "rows/s", "MB/s"],
        [
            [where, f"{options.rows / median(seconds):,.0f}", f"{_bytes(data) / median(seconds) / 1e6:,.0f}"]
            for where, seconds in reading.items()
        ],
    )
    log.keep({"options": vars(options), "loading": loading, "reading": reading})


def _bytes(data: TextData) -> int:
    return data.training.tokens.nbytes


def _epoch(data: TextData, seed: int) -> float:
    """Seconds to take all rows of an epoch, a global batch after the other."""
    order = BatchOrder(rows=len(data.training), global_batch=_BATCH, seed=seed)
    device, start = torch.device("cpu"), time.perf_counter()
    for step in range(order.steps):
        data.training.batch(order.batch(0, step), device)
    return time.perf_counter() - start


def _forget(folder: Path) -> None:
    """Ask the kernel to drop the files of a folder from its cache."""
    for path in folder.rglob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
