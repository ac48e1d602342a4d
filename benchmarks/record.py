"""What a benchmark leaves: its record as JSON, and what it printed as a log.

A figure without its machine, versions and command is none, so every record names them. The easy mistake is to write
over the records that the documents quote: those are replaced by `--keep` alone.
"""

import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import psutil
from tabulate import tabulate

from benchmarks.meter import Usage

KEPT = Path(__file__).parent / "results"
"""The records that the documents quote."""
OWN = Path("results") / "benchmarks"
"""Where those of any other run go, in the working directory."""

_PACKAGES = ("mrjob", "numba", "numpy", "orjson", "h5py", "polars", "pyspark", "pyarrow", "torch", "fasttext-community")


def machine() -> dict[str, Any]:
    """This machine, in what matters for a benchmark."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        named = [
            line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        processor = named[0] if named else processor
    return {
        "cores": os.cpu_count(),
        "processor": processor,
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "kernel": platform.release(),
    }


class Log:
    """What is printed, and written to NAME.log in `folder`."""

    folder: ClassVar[Path] = OWN

    def __init__(self, name: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._name = name
        self._file = (self.folder / f"{name}.log").open("w", encoding="utf-8")
        self.command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
        self.say(f"$ {self.command}")
        self.say(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}  {machine()}")

    def say(self, text: str = "") -> None:
        """Print a line or several."""
        for out in (sys.stdout, self._file):
            out.write(text + "\n")
            out.flush()

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table as Markdown has it."""
        self.say("\n" + tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True) + "\n")

    def keep(self, record: dict[str, Any]) -> None:
        """Write the record, with what every record has, to NAME.json beside the log."""
        about = {
            "command": self.command,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine(),
            "python": platform.python_version(),
            "packages": {name: version(name) for name in _PACKAGES},
        }
        (self.folder / f"{self._name}.json").write_text(json.dumps({**about, **record}, indent=1) + "\n")


def figures(megabytes: float, usages: Sequence[Usage]) -> list[str]:
    """Medians of some runs as cells: MB a CPU-second, seconds, and the peaks of memory in MB."""
    cpu, wall, process, tree = (
        median(getattr(usage, name) for usage in usages) for name in ("cpu", "wall", "peak_process", "peak_tree")
    )
    return [f"{megabytes / cpu:.1f}", f"{wall:.1f}", f"{process / 1e6:,.0f}", f"{tree / 1e6:,.0f}"]


FIGURES = ("MB / CPU s", "wall s", "peak MB, largest process", "peak MB, all processes")
