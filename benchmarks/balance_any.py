"""`shoal_balance` in a program of its own: unequal ranks with DDP, balanced, with equal and with the best fixed shares.

    python -m benchmarks balance_any [--runs 3] [--steps 200]

Ranks sleep as long as GPUs of their rates would compute, so that more of them than there are cores do not slow each
other down. The order of the rows, the exchange of times and DDP's all-reduce are real.
"""

import argparse
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.ranks import run_on_ranks
from benchmarks.record import Log

RATES = {"two ranks, 1.79 to 1": (1790.0, 1000.0), "three ranks of 1 and one of 0.56": (1790.0, 1790.0, 1790.0, 1000.0)}
_BATCH = 128
_STEP = 0.02
"""Seconds of the step of which the overhead is a share."""


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks balance_any", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="of each case, in turns (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="of a run, of which the later half counts")
    options = parser.parse_args(arguments)
    log = Log("balance_any")
    found = []
    for name, rates in RATES.items():
        runs = [_runs(rates, options.steps) for _ in range(options.runs)]
        found.append({"ranks": name, "rates": rates, "runs": runs})
        half = options.steps - options.steps // 2
        ideal = half * _BATCH / sum(rates)
        rows = []
        for case in runs[0]:
            shares = sorted(ideal / run[case]["seconds"] for run in runs)
            gains = sorted(run["equal shares"]["seconds"] / run[case]["seconds"] for run in runs)
            rows.append(
                [
                    case,
                    f"{median(shares):.1%} ({shares[0]:.1%} to {shares[-1]:.1%})",
                    f"{median(gains):.2f}",
                    str(runs[-1][case]["split"]),
                ]
            )
        log.table([name, "of the sum of the rates", "times equal shares", "rows of a step"], rows)
        overheads = sorted(run["balanced"]["overhead"] for run in runs)
        log.say(f"overhead of a step: {median(overheads) * 1e6:.0f} us, {median(overheads) / _STEP:.2%} of 20 ms")
    log.keep({"cases": found})


def _runs(rates: Sequence[float], steps: int) -> dict[str, dict[str, Any]]:
    """A run of each case."""
    shares = {"equal shares": [1.0] * len(rates), "best fixed shares": list(rates), "balanced": None}
    given = {"rates": list(rates), "global_batch": _BATCH, "steps": steps}
    return {
        case: run_on_ranks(len(rates), "benchmarks.balance_any_rank", {**given, "shares": each})
        for case, each in shares.items()
    }
