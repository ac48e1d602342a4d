"""How much of the sum of its ranks' rates a run reaches, by balancer: ranks of unlike speed, and one that changes it.

    python -m benchmarks balance [--runs 3]

Speeds are 1 and .56 (an M60 and a K80). One fast and one slow rank train for real, a core each; the slow one sleeps
after its share. Three fast ones and a slow one sleep their computing, as this takes more cores than there may be, and
sum by gloo. The global batch, or how long is slept, decides what the all-reduce is of a step: about 1, 5, 20%. Where
speeds do not change, shares fixed in their proportion are beside the balancers, which is right for the ranks that
sleep: what is lost with those goes to noise, which no balancer can foresee. Where ranks train, the slow one sleeps
after what it needs to begin, too, and does better with fewer rows.

The easy mistakes: to hold a run whose rank slows down against that rank's first rate, where its ideal is a sum of two;
and to hold each balancer against rates of its own runs. All runs of a batch are held against the same: the medians of
the own rates in all runs in which no speed changed.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.ranks import run_on
from benchmarks.record import Log
from benchmarks.rows import write_rows
from bootstrap.progress import Bars
from bootstrap.train import train_here
from trainer.config import Slowed, TrainConfig

HOWS = ("off", "epoch:1", "steps")
EPOCHS = 4
SLOW = 0.56
_KNOWN = "the speeds, known"

_BATCHES = {1: 4_000, 5: 800, 20: 64}
"""Rows a step, by about how much the all-reduce is of it (in %), of two ranks that train for real."""
_STEPS = {1: 24, 5: 50, 20: 150}
"""Steps an epoch: no run is so short that its checkpoints are most of it."""
_SLEPT_STEPS = {1: 60, 5: 60, 20: 100}
_FLOATS = {1: 100_000, 5: 400_000, 20: 1_000_000}
"""Steps an epoch, and what they sum, of ranks that sleep: a step is long beside what four processes on fewer cores need
for anything else, and a run beside the steps before a change is seen."""
_CHANGES = {"as they are": False, "one halves its speed midway": True}

_COMPUTING = "1 + 1, computing"

Figures = dict[str, float]
_Case = tuple[str, str, int, str]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks balance", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log("balance")
    found: dict[_Case, list[Figures]] = {}
    own_rates: dict[int, list[list[float]]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        for percent, batch in _BATCHES.items():
            write_rows(folder / f"{percent}.h5", batch * _STEPS[percent])
        for run in range(options.runs):
            for change, halves in _CHANGES.items():
                for percent, batch in _BATCHES.items():
                    for how in HOWS if halves else (*HOWS, _KNOWN):
                        trained, rates = _trained(folder, percent, batch, how, halves, run)
                        if not halves:
                            own_rates.setdefault(percent, []).append(rates)
                        slept = _slept(percent, how, halves, run)
                        for ranks, figures in ((_COMPUTING, trained), ("3 + 1, sleeping", slept)):
                            found.setdefault((ranks, change, percent, how), []).append(figures)
                            log.say(f"{ranks}, {change}, {percent}%, {how}: {figures}")
    for (ranks, change, percent, _), runs in found.items():
        if ranks == _COMPUTING:
            rates = [median(rank) for rank in zip(*own_rates[percent], strict=True)]
            for run in runs:
                run["share"] = ideal_seconds(run["rows"], rates, _CHANGES[change]) / run["seconds"]
    rows = []
    for (ranks, change, percent, how), runs in found.items():
        shown = [median(run[figure] for run in runs) for figure in ("share", "communication", "imbalance")]
        shown.insert(2, median(run["share"] + run["communication"] for run in runs))
        rows.append([ranks, change, f"{percent}", how, *(f"{figure:.1%}" for figure in shown), str(len(runs))])
    log.table(
        [
            *("ranks", "speeds", "all-reduce, about %", "balance"),
            *("share of ideal", "all-reduce", "sum of these", "imbalance", "runs"),
        ],
        rows,
    )
    log.keep({"own_rates": own_rates, "runs": [[*case, runs] for case, runs in found.items()]})


def ideal_seconds(rows: float, rates: Sequence[float], halves: bool) -> float:
    """The least that `rows` can take ranks of these rates (rows/s); with `halves`, of which the last loses half of its
    own after half of the rows."""
    if not halves:
        return rows / sum(rates)
    return rows / 2 / sum(rates) + rows / 2 / (sum(rates) - rates[-1] / 2)


def _trained(folder: Path, percent: int, batch: int, how: str, halves: bool, seed: int) -> tuple[Figures, list[float]]:
    """Two ranks, a core each, by the trainer itself; and their own rates."""
    slowness = 1 / SLOW
    config = TrainConfig(
        data=folder / f"{percent}.h5",
        output=folder / "model",
        force=True,
        epochs=EPOCHS,
        global_batch=batch,
        balance=f"1,{SLOW}" if how == _KNOWN else how,
        rate_scaling="none",
        slow={1: Slowed(slowness, 2 * slowness, EPOCHS * _STEPS[percent] // 2) if halves else Slowed(slowness)},
        threads=1,
        seed=seed,
    )
    with Bars() as bars:
        summary = train_here(config, ranks=2, bars=bars)
    figures = {"rows": summary["rows_seen"], "seconds": summary["seconds"], **summary["lost"]}
    return figures, summary["own_rates"]


def _slept(percent: int, how: str, halves: bool, seed: int) -> Figures:
    """Four ranks by `benchmarks.slept`."""
    speeds = [1.0, 1.0, 1.0, SLOW]
    asked = {
        "speeds": speeds,
        "how": ",".join(map(str, speeds)) if how == _KNOWN else how,
        "reducing": percent / 100,
        "floats": _FLOATS[percent],
        "epochs": EPOCHS,
        "steps_per_epoch": _SLEPT_STEPS[percent],
        "halves": halves,
        "seed": seed,
    }
    return run_on(4, "benchmarks.slept", asked)
