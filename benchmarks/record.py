"""Record of a benchmark as JSON, and log of its output.

Every record names its machine, versions and command, because a figure is worthless without them. Only `--keep` replaces
the records that the documents quote. Import only Python's standard library here: a benchmark may run where little else
is installed.
"""

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from benchmarks.meter import Usage

KEPT = Path(__file__).parent / "results"
"""Folder of the records that the documents quote."""
OWN = Path("results") / "benchmarks"
"""Folder for the records of all other runs, in the working directory."""

_PACKAGES = (
    *("mrjob", "numba", "numpy", "orjson", "h5py", "polars", "pyspark", "pyarrow", "torch"),
    *("fasttext-community", "gensim", "scikit-learn"),
)


def machine() -> dict[str, Any]:
    """Return the properties of this machine that affect a benchmark. GPUs are included if torch is imported."""
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
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "kernel": platform.release(),
        **_gpus(),
    }


def _gpus() -> dict[str, Any]:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {}
    return {
        "gpus": _gpu_names(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
    }


def _gpu_names() -> list[str]:
    """Return name, memory and driver of each GPU by nvidia-smi: torch would occupy GPU memory."""
    command = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return ["unknown, as nvidia-smi does not answer"]


def _versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    found = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    lines = [headers, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


class Log:
    """Output that is printed and also written to NAME.log in `folder`."""

    folder: ClassVar[Path] = OWN

    def __init__(self, name: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._name = name
        self._file = (self.folder / f"{name}.log").open("w", encoding="utf-8")
        self.command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
        self.say(f"$ {self.command}")
        self.say(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}  {machine()}")

    def say(self, text: str = "") -> None:
        """Print one or several lines."""
        for out in (sys.stdout, self._file):
            out.write(text + "\n")
            out.flush()

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table in Markdown."""
        self.say("\n" + table(headers, rows) + "\n")

    def keep(self, record: dict[str, Any]) -> None:
        """Write the record to NAME.json next to the log, with command, time, machine and versions."""
        about = {
            "command": self.command,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": machine(),
            "python": platform.python_version(),
            "packages": _versions(),
        }
        (self.folder / f"{self._name}.json").write_text(json.dumps({**about, **record}, indent=1) + "\n")


def figures(megabytes: float, usages: "Sequence[Usage]") -> list[str]:
    """Return medians over runs as cells: MB per CPU second, seconds, and peak memory in MB."""
    cpu, wall, process, tree = (
        median(getattr(usage, name) for usage in usages) for name in ("cpu", "wall", "peak_process", "peak_tree")
    )
    return [f"{megabytes / cpu:.1f}", f"{wall:.1f}", f"{process / 1e6:,.0f}", f"{tree / 1e6:,.0f}"]


FIGURES = ("MB / CPU s", "wall s", "peak MB, largest process", "peak MB, all processes")


def spread(values: Sequence[float], digits: int) -> str:
    return f"{mean(values):.{digits}f} ± {stdev(values) if len(values) > 1 else 0.0:.{digits}f}"


def difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the mean difference over seeds, and its standard error."""
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    error = stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return f"{mean(differences):+.4f} ± {error:.4f}"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the median ratio over runs, with the smallest and the largest."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
