"""How right predictions are: runs on this machine, beside what was predicted of them from a calibration before.

    python -m benchmarks plan [--runs 3]

One rank, two equal ones, and two of which one is slowed; each with two sizes of data and two global batches, which are
none of the calibration's. The whole command is predicted, from the start of its processes to the written model. Then
preprocessing: two sizes make a line, which predicts a third.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.fitting import fit_line
from benchmarks.generated import write_reviews
from benchmarks.record import Log
from benchmarks.rows import write_rows
from bootstrap.progress import Bars
from bootstrap.training.calibration import calibrate_locally
from bootstrap.training.local import train_locally
from corpus.reading.sources import Inputs
from experiments.prediction.rates import rates_of
from experiments.prediction.training import TrainingWork, predict_training
from experiments.runs import read_run
from jobs.pipeline import preprocess_locally
from trainer.config import Slowdown, TrainConfig


class _Ranks(NamedTuple):
    name: str
    number: int
    slow: dict[int, Slowdown]


_RANKS = (
    _Ranks("1 rank", 1, {}),
    _Ranks("2 ranks", 2, {}),
    _Ranks("2 ranks, one half as fast", 2, {1: Slowdown(2.0)}),
)
_WORK = ((60_000, 128, 2), (150_000, 512, 2))
"""Training rows, global batch, epochs."""
_MB = (100, 200, 400)
"""Raw reviews: the first two make the line that predicts the third."""


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks plan", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs=2, default=[rows for rows, _, _ in _WORK], help=argparse.SUPPRESS)
    parser.add_argument("--mb", type=int, nargs=3, default=_MB, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    log = Log("plan")
    found: dict[tuple[str, ...], list[dict[str, float]]] = {}
    with TemporaryDirectory() as name, Bars() as bars:
        folder = Path(name)
        for rows in options.rows:
            write_rows(folder / f"{rows}.h5", rows)
        for run in range(options.runs):
            for case, figures in (*_trainings(folder, options.rows, bars), _preprocessing(folder, options.mb, run)):
                found.setdefault(case, []).append(figures)
                log.say(f"{run}, {', '.join(case)}: {figures}")
    rows = []
    for case, runs in found.items():
        errors = [each["predicted"] / each["measured"] - 1 for each in runs]
        rows.append(
            [
                *case,
                f"{median(each['predicted'] for each in runs):.1f}",
                f"{median(each['measured'] for each in runs):.1f}",
                f"{median(errors):+.1%}",
                f"{min(errors):+.1%} to {max(errors):+.1%}",
            ]
        )
    log.table(["ranks", "work", "predicted, s", "measured, s", "error", "of the runs"], rows)
    log.keep({"runs": [[*case, runs] for case, runs in found.items()]})


def _trainings(folder: Path, sizes: Sequence[int], bars: Bars) -> list[tuple[tuple[str, ...], dict[str, float]]]:
    """Calibrate each kind of ranks, then train twice with it."""
    found: list[tuple[tuple[str, ...], dict[str, float]]] = []
    for ranks in _RANKS:
        plain = TrainConfig(data=folder, output=folder / "rates", slow=ranks.slow, threads=1, force=True)
        calibrated = calibrate_locally(plain, data=None, ranks=ranks.number, bars=bars)
        rates = rates_of([read_run(each) for each in calibrated])
        for rows, (_, batch, epochs) in zip(sizes, _WORK, strict=True):
            config = replace(
                plain, data=folder / f"{rows}.h5", output=folder / "model", global_batch=batch, epochs=epochs
            )
            start = perf_counter()
            summary: dict[str, Any] = train_locally(config, ranks=ranks.number, bars=bars)
            took = perf_counter() - start
            run = read_run(config.output)
            work = TrainingWork(
                rows=summary["rows"],
                validation=run.latest.rows["validation"],
                test=run.latest.rows["test"],
                epochs=epochs,
                global_batch=batch,
            )
            case = (ranks.name, f"{rows:,} rows, batches of {batch}")
            found.append((case, {"predicted": predict_training(work, rates).all, "measured": took}))
    return found


def _preprocessing(folder: Path, sizes: Sequence[int], seed: int) -> tuple[tuple[str, ...], dict[str, float]]:
    """Preprocess three sizes; the first two predict the third."""
    times = []
    for size in sizes:
        source = folder / f"{size}.json"
        if not source.exists():
            write_reviews(source, size * 1_000_000, seed)
        start = perf_counter()
        preprocess_locally(Inputs(files=(str(source),)), str(folder / "dataset"))
        times.append(perf_counter() - start)
    line = fit_line(sizes[:2], times[:2])
    predicted = line.start + line.slope * sizes[2]
    return ("preprocessing", f"{sizes[2]} MB"), {"predicted": predicted, "measured": times[2]}
