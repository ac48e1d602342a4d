"""How right predictions and simulations are: runs on this machine, beside what was said of them from a calibration.

    python -m benchmarks plan [--runs 3]

One rank, two equal ones, and two of which one is slowed; each with two sizes of data and two global batches, which are
none of the calibration's. Before that, once, 4 and 8 ranks of two speeds, which sleep instead of computing, with each
balancer; the order, the balancer and the exchange are real. The whole command is predicted, from the start of its
processes to the written model. The simulator's steps take the place of the predicted ones, and are compared by
themselves, too. Then preprocessing: two sizes make a line, which predicts one between them: beyond them the noise of
both would count several times, and 100 MB do not fill two cores evenly, because tasks have 64 MB. All of it takes up to
twenty minutes.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.fitting import fit_line
from benchmarks.generated import write_reviews
from benchmarks.record import Log
from benchmarks.rows import write_rows
from benchmarks.simulation.cluster import Troubles, simulate
from benchmarks.simulation.comparing import balancer_maker
from benchmarks.simulation.making import cluster_of_rates
from benchmarks.trained import train_here
from bootstrap.progress import Bars
from bootstrap.training.calibration import calibrate
from bootstrap.training.places.this_machine import ThisMachine
from corpus.dataset_settings import REFERENCE
from corpus.reading.sources import Inputs
from experiments.forecast.rates import Rates, rates_of
from experiments.forecast.training import TrainingWork, predict_training
from experiments.records.runs import read_run
from jobs.pipeline import preprocess_locally
from trainer.config import TrainConfig
from trainer.options.run_options import Slowdown
from trainer.order import BatchOrder


class _Ranks(NamedTuple):
    name: str
    number: int
    slow: tuple[tuple[int, Slowdown], ...] = ()
    sleep: tuple[float, ...] = ()


_RANKS = (
    _Ranks("1 rank", 1),
    _Ranks("2 ranks", 2),
    _Ranks("2 ranks, one half as fast", 2, slow=((1, Slowdown(2.0)),)),
)
_WORK = ((60_000, 128, 2), (150_000, 512, 2))
"""Training rows, global batch, epochs."""

_FAST, _SLOW = 1067.0, 600.0
"""Rows a second of ranks that sleep: a fifth of the reference's M60 and K80, as in experiments/mixed-gpus.yaml."""
_ASLEEP = (
    _Ranks("4 ranks asleep, 3 + 1", 4, sleep=(*[_FAST] * 3, _SLOW)),
    _Ranks("8 ranks asleep, 6 + 2", 8, sleep=(*[_FAST] * 6, *[_SLOW] * 2)),
)
_BALANCES = ("off", "epoch:1", "steps")
_RANK_BATCH, _STEPS, _EPOCHS = 128, 20, 3
"""Of ranks that sleep: rows a step and rank, steps of an epoch, epochs."""
_MB = (200, 800, 400)
"""Raw reviews: the first two make the line that predicts the third."""
_OF_STEPS = " steps"
"""What follows the names of figures that are of the steps alone."""

Figures = dict[str, float]
_Case = tuple[str, str]
"""The ranks, and their work."""


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks plan", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs=2, default=[rows for rows, _, _ in _WORK], help=argparse.SUPPRESS)
    parser.add_argument("--mb", type=int, nargs=3, default=_MB, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    log = Log("plan")
    found: dict[_Case, list[Figures]] = {}
    with TemporaryDirectory() as name, Bars() as bars:
        bench = _Bench(Path(name), bars)
        for run in range(options.runs):
            for case, figures in bench.cases(options.rows, options.mb, run):
                found.setdefault(case, []).append(figures)
                log.say(f"{run}, {', '.join(case)}: {figures}")
    log.say("\nThe whole command:")
    _show(log, found, "")
    log.say("Its steps alone:")
    _show(log, {case: runs for case, runs in found.items() if f"predicted{_OF_STEPS}" in runs[0]}, _OF_STEPS)
    log.keep({"runs": [[*case, runs] for case, runs in found.items()]})


def _show(log: Log, found: dict[_Case, list[Figures]], of: str) -> None:
    """Print the medians of the cases, and the errors of the runs."""
    rows = []
    for case, runs in found.items():
        cells = [f"{median(run[f'measured{of}'] for run in runs):.1f}"]
        for told in ("predicted", "simulated"):
            if f"{told}{of}" not in runs[0]:
                cells += ["", "", ""]
                continue
            errors = [run[f"{told}{of}"] / run[f"measured{of}"] - 1 for run in runs]
            cells.append(f"{median(run[f'{told}{of}'] for run in runs):.1f}")
            cells += [f"{median(errors):+.1%}", f"{min(errors):+.1%} to {max(errors):+.1%}"]
        rows.append([*case, *cells, f"{len(runs)}"])
    heads = [cell for told in ("predicted", "simulated") for cell in (f"{told}, s", "error", "of the runs")]
    log.table(["ranks", "work", "measured, s", *heads, "runs"], rows)


class _Bench:
    """Makes the runs, in a folder."""

    def __init__(self, folder: Path, bars: Bars) -> None:
        self._folder, self._bars = folder, bars

    def cases(self, sizes: Sequence[int], megabytes: Sequence[int], run: int) -> Iterator[tuple[_Case, Figures]]:
        """Run each case once, ranks that sleep in the first run alone: their times differ by a hundredth."""
        if run == 0:
            yield from self.asleep()
        yield from self.computing(sizes)
        yield self.preprocessing(megabytes, run)

    def computing(self, sizes: Sequence[int]) -> Iterator[tuple[_Case, Figures]]:
        """Calibrate each kind of ranks that compute, then train twice."""
        for ranks in _RANKS:
            rates = self._rates(ranks)
            for rows, (_, batch, epochs) in zip(sizes, _WORK, strict=True):
                case = (ranks.name, f"{rows:,} rows, batches of {batch}")
                yield case, self._trained(ranks, rates, rows=rows, global_batch=batch, epochs=epochs)

    def asleep(self) -> Iterator[tuple[_Case, Figures]]:
        """Calibrate each kind of ranks that sleep, then train with each balancer."""
        for ranks in _ASLEEP:
            rates, batch = self._rates(ranks), ranks.number * _RANK_BATCH
            for how in _BALANCES:
                work = {"rows": batch * _STEPS, "global_batch": batch, "epochs": _EPOCHS}
                yield (ranks.name, how), self._trained(ranks, rates, balance=how, **work)

    def preprocessing(self, sizes: Sequence[int], seed: int) -> tuple[_Case, Figures]:
        """Preprocess three sizes; the first two predict the third."""
        times = []
        for size in sizes:
            source = self._folder / f"{size}.json"
            if not source.exists():
                write_reviews(source, size * 1_000_000, seed)
            start = perf_counter()
            preprocess_locally(Inputs(files=(str(source),)), str(self._folder / "dataset"), settings=REFERENCE)
            times.append(perf_counter() - start)
        line = fit_line(sizes[:2], times[:2])
        predicted = line.start + line.slope * sizes[2]
        return ("preprocessing", f"{sizes[2]} MB"), {"predicted": predicted, "measured": times[2]}

    def _config(self, ranks: _Ranks, **more: Any) -> TrainConfig:
        asked = {"data": self._folder, "output": self._folder / "rates", "threads": 1, "force": True, **more}
        return TrainConfig(slow=dict(ranks.slow), sleep=ranks.sleep, **asked)

    def _rates(self, ranks: _Ranks) -> Rates:
        calibrated = calibrate(self._config(ranks), ThisMachine(ranks.number), data=None, bars=self._bars)
        return rates_of([read_run(each) for each in calibrated])

    def _trained(self, ranks: _Ranks, rates: Rates, *, rows: int, balance: str = "steps", **options: Any) -> Figures:
        """Train, and compare what was said of it."""
        data = self._folder / f"{rows}.h5"
        if not data.exists():
            write_rows(data, rows)
        config = self._config(ranks, data=data, output=self._folder / "model", balance=balance, **options)
        start = perf_counter()
        summary: dict[str, Any] = train_here(config, ranks=ranks.number, bars=self._bars)
        took = perf_counter() - start
        run = read_run(config.output)
        work = TrainingWork(
            rows=summary["rows"],
            validation=run.latest.rows["validation"],
            test=run.latest.rows["test"],
            epochs=summary["epochs"],
            global_batch=summary["global_batch"],
            balance=balance,
            row_bytes=data.stat().st_size / rows,
        )
        predicted = predict_training(work, rates)
        order = BatchOrder(rows=work.rows, global_batch=work.global_batch, seed=config.seed)
        cluster = cluster_of_rates(rates, Troubles(jitter=0.0, checkpoint_seconds=0.0))  # a prediction has these
        steps = simulate(cluster, balancer_maker(balance, order), order, epochs=work.epochs).seconds
        return {
            "predicted": predicted.all,
            "simulated": predicted.all - predicted.training + steps,
            "measured": took,
            f"predicted{_OF_STEPS}": predicted.training,
            f"simulated{_OF_STEPS}": steps,
            f"measured{_OF_STEPS}": summary["times"]["training"],
        }
