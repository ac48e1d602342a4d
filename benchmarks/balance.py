"""Throughput of a run as a share of the sum of its ranks' rates, by balancer, with ranks of unequal speed.

    python -m benchmarks balance [PART...] [--runs 3]

Parts:

- `computing`: one fast and one slow rank train. The slow rank sleeps after its share.
- `sleeping`: three fast ranks and a slow one sleep instead of computing, because there may be too few cores. Their
  all-reduce with gloo is real.
- `jitter`: ranks sleep for times that vary by 1, 5 and 12% from step to step. There are two equal ranks, and three with
  a slow one.

Speeds are 1 and .56 (an M60 and a K80). The global batch, or the time of sleep, determines the share of the all-reduce
in a step: about 1, 5, 20%; in `jitter` 1%. Without changes of speed, the balancers are compared with the best fixed
split, which is known only after a run. For sleeping ranks it is in proportion to their speeds. For training ranks it is
in proportion to their rows in the previous run with `steps`.

Two traps in a comparison:

- If a rank slows down, the ideal time is the sum of two parts.
- Runs with one global batch share one reference: the medians of the own rates in all runs without a change of speed.
  Do not use the rates of a balancer's own run. Only `balanced` is relative to its own run.
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
from trainer.config import configured

HOWS = ("off", "epoch:1", "steps")
SLOW = 0.56
_EPOCHS = 4
_KNOWN = "known afterwards"

_BATCHES = {1: 4_000, 5: 800, 20: 64}
"""Rows of a step of two training ranks, by the approximate share of the all-reduce in a step (in %)."""
_STEPS = {1: 24, 5: 50, 20: 150}
"""Steps of an epoch of these ranks, long enough that checkpoints take a small part of a run."""
_SLEPT_STEPS = {1: 60, 5: 60, 20: 100}
_FLOATS = {1: 100_000, 5: 400_000, 20: 1_000_000}
"""Steps of an epoch, and numbers that an all-reduce sums, for sleeping ranks. A step is long compared with the other
work of four processes on fewer cores. A run is long compared with the reaction time of a balancer."""
_CHANGES = {"as they are": False, "one halves its speed midway": True}

_TEAMS = {"1 + 1": [1.0, 1.0], "3 + 1": [1.0, 1.0, 1.0, SLOW]}
_TEAM_FLOATS = {"1 + 1": 400_000, "3 + 1": 100_000}
"""Numbers that an all-reduce sums, so that a step takes some hundred ms, and the all-reduce 1% of it."""
_JITTERS = (1, 5, 12)
_FIXED = 0.005
"""Fixed time of a rank, as a share of such a step."""

COMPUTING, SLEEPING, JITTER = "computing", "sleeping", "jitter"

Figures = dict[str, float]
_Case = tuple[str, str, str, str]
"""A case: ranks, speeds, share of the all-reduce in a step (in %), and balancer."""


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks balance", description=__doc__.partition("\n")[0])
    parts = (COMPUTING, SLEEPING, JITTER)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(parts)} (default: all)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(parts):
        parser.error(f"the part {', '.join(sorted(unknown))} does not exist; choose from {', '.join(parts)}")
    log = Log("balance")
    found: dict[_Case, list[Figures]] = {}
    own_rates: dict[str, list[list[float]]] = {}
    with TemporaryDirectory() as name:
        for run in range(options.runs):
            for case, figures, rates in _cases(Path(name), options.parts or parts, run):
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


def _cases(folder: Path, parts: Sequence[str], seed: int) -> Iterator[tuple[_Case, Figures, list[float] | None]]:
    """Run each case once. Yield the case, its figures, and the ranks' own rates (None unless they are measured)."""
    for change, halves in _CHANGES.items():
        for percent in _BATCHES:
            split = "1,1"
            for how in HOWS if halves else (*HOWS, _KNOWN):
                if COMPUTING in parts and not halves:
                    figures, rates, split = _trained(folder, percent, how, split, seed)
                    yield ("1 + 1, computing", change, f"{percent}", how), figures, rates
                if SLEEPING in parts:
                    figures = _slept(_TEAMS["3 + 1"], percent, how, seed, halves=halves)
                    yield ("3 + 1, sleeping", change, f"{percent}", how), figures, None
    if JITTER in parts:
        for (team, speeds), percent in product(_TEAMS.items(), _JITTERS):
            more = {"floats": _TEAM_FLOATS[team], "jitter": percent / 100, "fixed": _FIXED}
            figures = _slept(speeds, 1, "steps", seed, **more)
            yield (f"{team}, sleeping", f"vary by {percent}%", "1", "steps"), figures, None


def _compare(log: Log, found: dict[_Case, list[Figures]]) -> None:
    """Print the throughput with `steps` as a share of that with the best fixed split, run by run."""
    rows = []
    for case, runs in found.items():
        known = found.get((*case[:3], _KNOWN))
        if known and case[3] == "steps":
            ratios = [one["share"] / other["share"] for one, other in zip(runs, known, strict=True)]
            rows.append([*case[:3], f"{median(ratios):.1%}", f"{min(ratios):.1%} to {max(ratios):.1%}"])
    if rows:
        log.table(["ranks", "speeds", "all-reduce, about %", "steps, of the split known afterwards", "runs"], rows)


def ideal_seconds(rows: float, rates: Sequence[float], halves: bool) -> float:
    """Return the shortest time in seconds in which ranks of these rates (rows/s) compute `rows`.

    With `halves` the last rank loses half of its rate after half of the rows.
    """
    if not halves:
        return rows / sum(rates)
    return rows / 2 / sum(rates) + rows / 2 / (sum(rates) - rates[-1] / 2)


def _trained(folder: Path, percent: int, how: str, split: str, seed: int) -> tuple[Figures, list[float], str]:
    """Train with two ranks. Return the figures, the ranks' own rates, and the rows of each rank as fixed shares.

    `split` are the shares of the best fixed split.
    """
    data, slowness = folder / f"{percent}.h5", 1 / SLOW
    if not data.exists():
        write_rows(data, _BATCHES[percent] * _STEPS[percent])
    config = configured(
        {
            "model": "lstm",
            "data": data,
            "output": folder / "model",
            "force": True,
            "epochs": _EPOCHS,
            "global_batch": _BATCHES[percent],
            "balance": split if how == _KNOWN else how,
            "rate_scaling": "none",
            "slow": {1: slowness},
            "seed": seed,
        }
    )
    summary = train_here(config, ranks=2)
    figures = {
        "rows": summary["rows_seen"],
        "seconds": summary["seconds"],
        "balanced": summary["balanced"],
        **summary["lost"],
    }
    return figures, summary["own_rates"], ",".join(map(str, summary["rows_of_ranks"]))


def _slept(speeds: Sequence[float], percent: int, how: str, seed: int, **more: Any) -> Figures:
    """Run sleeping ranks (`benchmarks.sleeping_rank`). `more` overrides their options."""
    options = {
        "speeds": speeds,
        "how": ",".join(map(str, speeds)) if how == _KNOWN else how,
        "reducing": percent / 100,
        "floats": _FLOATS[percent],
        "epochs": _EPOCHS,
        "steps_per_epoch": _SLEPT_STEPS[percent],
        "halves": False,
        "jitter": 0.01,
        "fixed": 0.05,
        "seed": seed,
        **more,
    }
    return run_on_ranks(len(speeds), "benchmarks.sleeping_rank", options)
