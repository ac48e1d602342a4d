"""How much of the sum of its ranks' rates a run reaches, by balancer, with ranks of different or changing speed.

    python -m benchmarks balance [PART...] [--runs 3] [--percents 1 5 20] [--epochs 4]

Parts:

- `computing`: one fast and one slow rank train; the slow one sleeps after its share.
- `sleeping`: three fast ranks and a slow one sleep instead of computing, because there may be too few cores, and sum
  by gloo.
- `jitter`: ranks that sleep, whose times vary from step to step by 1, 5 and 12%: two of the same speed, and three
  with a slow one.

Speeds are 1 and .56 (an M60 and a K80). The global batch, or the time of sleep, determines the share of the all-reduce
in a step: about 1, 5, 20%; in `jitter` 1%. If speeds do not change, the balancers are compared with the best fixed
split, which is known afterwards. For ranks that sleep it is in proportion to their speeds, for ranks that train to the
rows that they had in the run with `steps` before.

Do not compare a run whose rank slows down with that rank's first rate alone: its ideal is a sum of two. Do not compare
a balancer with the rates of its own runs either: all runs with one global batch are compared with the medians of the
own rates in all runs without a change of speed. `balanced` belongs to each run by itself.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.ranks import run_on_ranks, train_here
from benchmarks.record import Log
from benchmarks.rows import write_rows
from bootstrap.progress import Bars
from trainer.config import TrainConfig

HOWS = ("off", "epoch:1", "steps")
SLOW = 0.56
_KNOWN = "known afterwards"

_BATCHES = {1: 4_000, 5: 800, 20: 64}
"""Rows a step of two ranks that train, by the approximate share of the all-reduce in a step (in %)."""
_STEPS = {1: 24, 5: 50, 20: 150}
"""Steps an epoch of these ranks: no run is so short that its checkpoints are most of it."""
_SLEPT_STEPS = {1: 60, 5: 60, 20: 100}
_FLOATS = {1: 100_000, 5: 400_000, 20: 1_000_000}
"""For ranks that sleep: steps an epoch, and how many numbers they sum. A step is long compared with the other work of
four processes on fewer cores, and a run is long compared with the steps before a change is noticed."""
_CHANGES = {"as they are": False, "one halves its speed midway": True}

_TEAMS = {"1 + 1": [1.0, 1.0], "3 + 1": [1.0, 1.0, 1.0, SLOW]}
_TEAM_FLOATS = {"1 + 1": 400_000, "3 + 1": 100_000}
"""How many numbers they sum: a step then takes some hundred ms, and the all-reduce is 1% of it."""
_JITTERS = (1, 5, 12)
_FIXED = 0.005
"""The time that a rank needs to begin, as a share of such a step."""

COMPUTING, SLEEPING, JITTER = "computing", "sleeping", "jitter"

Figures = dict[str, float]
_Case = tuple[str, str, str, str]
"""The ranks, their speeds, the share of the all-reduce in a step (in %), and the balancer."""


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks balance", description=__doc__.partition("\n")[0])
    parts = (COMPUTING, SLEEPING, JITTER)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)} (default: all)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument(
        "--percents",
        type=int,
        nargs="+",
        choices=tuple(_BATCHES),
        default=list(_BATCHES),
        help="approximate share of the all-reduce in a step (default: all)",
    )
    parser.add_argument("--epochs", type=int, default=4, help="epochs of each run (default: %(default)s)")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(parts):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are {', '.join(parts)}")
    log = Log("balance")
    found: dict[_Case, list[Figures]] = {}
    own_rates: dict[str, list[list[float]]] = {}
    with TemporaryDirectory() as name:
        for run in range(options.runs):
            for case, figures, rates in _cases(Path(name), options, options.parts or parts, run):
                found.setdefault(case, []).append(figures)
                if rates:
                    own_rates.setdefault(case[2], []).append(rates)
                log.say(f"{', '.join(case)}: {figures}")
    for (ranks, change, percent, _), runs in found.items():
        if ranks == "1 + 1, computing":
            rates = [median(rank) for rank in zip(*own_rates[percent], strict=True)]
            for each in runs:
                each["share"] = ideal_seconds(each["rows"], rates, _CHANGES[change]) / each["seconds"]
    shown = ("share", "balanced", "communication", "imbalance", "rest")
    log.table(
        [
            *("ranks", "speeds", "all-reduce, about %", "balance"),
            *("share of ideal", "balanced", "all-reduce", "imbalance", "rest", "runs"),
        ],
        [
            [*case, *(f"{median(run[figure] for run in runs):.1%}" for figure in shown), str(len(runs))]
            for case, runs in found.items()
        ],
    )
    _compare(log, found)
    log.keep({"own_rates": own_rates, "runs": [[*case, runs] for case, runs in found.items()]})


def _cases(
    folder: Path, options: argparse.Namespace, parts: Sequence[str], seed: int
) -> Iterator[tuple[_Case, Figures, list[float] | None]]:
    """Run each case once. Yields the case, its figures, and the ranks' own rates if they are measured and no rank
    changes its speed."""
    for change, halves in _CHANGES.items():
        for percent in options.percents:
            split = "1,1"
            for how in HOWS if halves else (*HOWS, _KNOWN):
                if COMPUTING in parts and not halves:
                    figures, rates, split = _trained(folder, percent, how, split, options.epochs, seed)
                    yield ("1 + 1, computing", change, f"{percent}", how), figures, rates
                if SLEEPING in parts:
                    figures = _slept(_TEAMS["3 + 1"], percent, how, seed, options.epochs, halves=halves)
                    yield ("3 + 1, sleeping", change, f"{percent}", how), figures, None
    if JITTER in parts:
        for (team, speeds), percent in product(_TEAMS.items(), _JITTERS):
            more = {"floats": _TEAM_FLOATS[team], "jitter": percent / 100, "fixed": _FIXED}
            figures = _slept(speeds, 1, "steps", seed, options.epochs, **more)
            yield (f"{team}, sleeping", f"vary by {percent}%", "1", "steps"), figures, None


def _compare(log: Log, found: dict[_Case, list[Figures]]) -> None:
    """Print the speed with `steps` as a share of that with the split known afterwards, run by run."""
    rows = []
    for case, runs in found.items():
        known = found.get((*case[:3], _KNOWN))
        if known and case[3] == "steps":
            ratios = [one["share"] / other["share"] for one, other in zip(runs, known, strict=True)]
            rows.append([*case[:3], f"{median(ratios):.1%}", f"{min(ratios):.1%} to {max(ratios):.1%}"])
    if rows:
        log.table(["ranks", "speeds", "all-reduce, about %", "steps, of the split known afterwards", "runs"], rows)


def ideal_seconds(rows: float, rates: Sequence[float], halves: bool) -> float:
    """The least seconds in which ranks of these rates (rows/s) compute `rows`. With `halves` the last rank loses half
    of its rate after half of the rows."""
    if not halves:
        return rows / sum(rates)
    return rows / 2 / sum(rates) + rows / 2 / (sum(rates) - rates[-1] / 2)


def _trained(
    folder: Path, percent: int, how: str, split: str, epochs: int, seed: int
) -> tuple[Figures, list[float], str]:
    """Train with two ranks; returns the figures, the ranks' own rates, and the rows of each rank, as fixed shares.

    `split`: the shares of the split that is known afterwards.
    """
    data, slowness = folder / f"{percent}.h5", 1 / SLOW
    if not data.exists():
        write_rows(data, _BATCHES[percent] * _STEPS[percent])
    config = TrainConfig(
        data=data,
        output=folder / "model",
        force=True,
        epochs=epochs,
        global_batch=_BATCHES[percent],
        balance=split if how == _KNOWN else how,
        rate_scaling="none",
        slow={1: slowness},
        seed=seed,
    )
    with Bars() as bars:
        summary = train_here(config, ranks=2, bars=bars)
    figures = {
        "rows": summary["rows_seen"],
        "seconds": summary["seconds"],
        "balanced": summary["balanced"],
        **summary["lost"],
    }
    return figures, summary["own_rates"], ",".join(map(str, summary["rows_of_ranks"]))


def _slept(speeds: Sequence[float], percent: int, how: str, seed: int, epochs: int, **more: Any) -> Figures:
    """Run ranks that sleep (`benchmarks.sleeping_rank`); `more` changes what they are asked for."""
    asked = {
        "speeds": speeds,
        "how": ",".join(map(str, speeds)) if how == _KNOWN else how,
        "reducing": percent / 100,
        "floats": _FLOATS[percent],
        "epochs": epochs,
        "steps_per_epoch": _SLEPT_STEPS[percent],
        "halves": False,
        "jitter": 0.01,
        "fixed": 0.05,
        "seed": seed,
        **more,
    }
    return run_on_ranks(len(speeds), "benchmarks.sleeping_rank", asked)
