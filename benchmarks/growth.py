"""How time and memory of Shoal's `-r local` grow with the input, and what follows for the reference's 92.45 GB here.

    python -m benchmarks growth [--gb 0.25 0.5 1 2 5 10] [--runs 3]

One file is written, of the largest size, and cut shorter and shorter: a generated file is the beginning of any longer
one. The residuals of the fit are printed with the prediction.
"""

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.fitting import Line, fit_line
from benchmarks.generated import write_reviews
from benchmarks.meter import Usage
from benchmarks.preprocess import REFERENCE, run_case
from benchmarks.record import FIGURES, Log, figures

RAW_GB = 92.45
"""Of the reference's reviews."""
_SEARCHED_BYTES = 1 << 20


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__.partition("\n")[0])
    parser.add_argument("--gb", type=float, nargs="+", default=[0.25, 0.5, 1, 2, 5, 10], help="sizes in GB")
    parser.add_argument("--runs", type=int, default=3, help="runs of each size (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the generated file (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where files go (default: the system's temporary folder)")
    options = parser.parse_args(arguments)
    if len(set(options.gb)) < 2:
        parser.error("--gb needs at least two sizes, because a line is drawn through them")
    log = Log("growth")
    usages: dict[float, list[Usage]] = {}
    with TemporaryDirectory(dir=options.folder) as name:
        source = Path(name) / "reviews.json"
        write_reviews(source, 2_000_000, options.seed)
        run_case(REFERENCE, source, source.parent)
        write_reviews(source, int(max(options.gb) * 1e9), options.seed)
        for gigabytes in sorted(options.gb, reverse=True):
            _cut(source, int(gigabytes * 1e9))
            usages[gigabytes] = [_run(log, source) for _ in range(options.runs)]
    sizes = sorted(usages)
    log.table(["GB", *FIGURES], [[f"{size:g}", *figures(1000 * size, usages[size])] for size in sizes])
    points = [(size, usage) for size in sizes for usage in usages[size]]
    lines: dict[str, Line] = {}
    for figure in ("wall", "cpu"):
        line = lines[figure] = fit_line([size for size, _ in points], [getattr(usage, figure) for _, usage in points])
        log.say(f"{figure} seconds = {line.start:.2f} + {line.slope:.3f} x GB, residuals {line.scatter}")
    peaks = [median(usage.peak_process for usage in usages[size]) / 1e6 for size in sizes]
    log.say(f"peak of the largest process: {min(peaks):.0f} to {max(peaks):.0f} MB")
    walls = [median(usage.wall for usage in usages[size]) for size in sizes]
    slope = (walls[-1] - walls[-2]) / (sizes[-1] - sizes[-2])
    here = max(lines["wall"].at(RAW_GB), walls[-1] + slope * (RAW_GB - sizes[-1]))
    log.say(f"from {sizes[-2]:g} to {sizes[-1]:g} GB: {slope:.2f} seconds a GB")
    log.say(f"\n{RAW_GB} GB on this machine, by the slower of the two: {here / 60:.1f} minutes")
    log.keep(
        {
            "runs": {f"{size:g} GB": [asdict(usage) for usage in usages[size]] for size in sizes},
            "fit": {figure: asdict(line) for figure, line in lines.items()},
            "minutes_here": here / 60,
        }
    )


def _run(log: Log, source: Path) -> Usage:
    usage, output = run_case(REFERENCE, source, source.parent)
    shutil.rmtree(output)
    if usage.failed:
        raise SystemExit(f"{source.stat().st_size:,} bytes: {usage.failed}")
    log.say(f"{source.stat().st_size:,} bytes: {usage}")
    return usage


def _cut(path: Path, size: int) -> None:
    """Shorten a file to whole lines of about `size` bytes."""
    if path.stat().st_size <= size + _SEARCHED_BYTES:
        return
    with path.open("r+b") as file:
        file.seek(size)
        file.truncate(size + file.read(_SEARCHED_BYTES).index(b"\n") + 1)
