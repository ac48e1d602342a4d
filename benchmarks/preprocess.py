"""Preprocessing by Shoal and its peers: the same work on the same generated file; see docs/benchmarks.md.

    python -m benchmarks preprocess [--gb 1 5] [--runs 3] [--cases NAME...]

Runs are interleaved: every case once, then every case again. Results must agree row by row, otherwise the figures do
not count. A case that fails for lack of memory or time gets a row with the reason. It does not run again, also not at
larger sizes.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psutil

from benchmarks.generated import write_reviews
from benchmarks.meter import Usage, metered
from benchmarks.peers.outcome import Outcome, outcome_of
from benchmarks.record import FIGURES, Log, figures

CASES = {
    "shoal": "Shoal",
    "plain_mrjob": "plain mrjob, -r local",
    "spark": "PySpark, local[2]",
    "polars_": "Polars",
}
"""Names of the cases in tables, by their modules in `benchmarks/peers/`."""
REFERENCE = "shoal"

_PROJECT = Path(__file__).parents[1]
_WARM_UP_BYTES = 2_000_000
_MEMORY_SHARE = 0.85
_PATIENCE, _TIME_LIMIT = 600.0, 3600.0
"""Seconds after which a case is not repeated, and after which it has failed."""


def run_case(case: str, source: Path, folder: Path) -> tuple[Usage, Path]:
    """Run a case once. Return its usage, and the folder of its result, which the caller must delete."""
    output = folder / case
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH")]))
    memory_limit = int(_MEMORY_SHARE * psutil.virtual_memory().available)
    command = [sys.executable, "-m", f"benchmarks.peers.{case}", str(source), str(output)]
    usage = metered(command, folder / f"{case}.log", memory_limit=memory_limit, time_limit=_TIME_LIMIT)
    return usage, output


class RunsOfSize:
    """Runs of all cases at one size."""

    def __init__(self, log: Log, source: Path, cases: Sequence[str]) -> None:
        self.usages: dict[str, list[Usage]] = {case: [] for case in cases}
        self.outcomes: dict[str, Outcome] = {}
        self._log, self._source = log, source

    def round(self) -> None:
        """Run each case once, except cases that failed or took too long before."""
        for case, before in self.usages.items():
            if before and (before[0].failed or before[0].wall > _PATIENCE):
                continue
            usage, output = run_case(case, self._source, self._source.parent)
            before.append(usage)
            if not usage.failed and case not in self.outcomes:
                self.outcomes[case] = outcome_of(output)
            shutil.rmtree(output)
            said = usage.failed or ", ".join(
                f"{figure} {cell}" for figure, cell in zip(FIGURES, figures(self.megabytes, [usage]), strict=True)
            )
            self._log.say(f"{CASES[case]}: {said}")

    @property
    def megabytes(self) -> float:
        """Size of the input in MB of 10^6 bytes."""
        return self._source.stat().st_size / 1e6

    def differing(self) -> list[str]:
        """Return the cases with a result that differs from the first case's."""
        expected = next(iter(self.outcomes.values()), None)
        return [case for case, outcome in self.outcomes.items() if outcome != expected]

    def report(self) -> None:
        """Print the table."""
        reference = _cpu(self.usages.get(REFERENCE, []))
        rows = []
        for case, usages in self.usages.items():
            name, failed = CASES[case], usages[0].failed
            if failed:
                rows.append([name, f"failed: {failed}", *[""] * len(FIGURES), str(len(usages))])
            else:
                ratio = f"{reference / _cpu(usages):.2f}" if reference else ""
                rows.append([name, *figures(self.megabytes, usages), ratio, str(len(usages))])
        self._log.table(["", *FIGURES, "rate to Shoal's", "runs"], rows)


def _cpu(usages: Sequence[Usage]) -> float:
    return median(usage.cpu for usage in usages) if usages and not usages[0].failed else 0.0


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments. Exit with 1 if outcomes differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks preprocess", description=__doc__.partition("\n")[0])
    parser.add_argument("--gb", type=float, nargs="+", default=[1, 5], help="sizes of the file in GB (default: 1 5)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="default: all")
    options = parser.parse_args(arguments)
    log = Log("preprocess")
    record, differing = {}, []
    cases = list(options.cases)
    with TemporaryDirectory() as name:
        source = Path(name) / "reviews.json"
        _warm_up(source, cases)
        for gigabytes in sorted(options.gb):
            write_reviews(source, int(gigabytes * 1e9))
            runs = RunsOfSize(log, source, cases)
            log.say(f"\n{source.stat().st_size:,} bytes\n")
            for _ in range(options.runs):
                runs.round()
            runs.report()
            differing += runs.differing()
            log.say(_verdict(runs))
            record[f"{gigabytes:g} GB"] = _recorded(runs)
            cases = [case for case in cases if not runs.usages[case][0].failed]
    log.keep({"sizes": record})
    if differing:
        sys.exit(f"the outcomes differ: {', '.join(sorted(set(differing)))}")


def _warm_up(source: Path, cases: Sequence[str]) -> None:
    """Fill the caches of compiled code, and the page cache with the programs."""
    write_reviews(source, _WARM_UP_BYTES)
    for case in cases:
        run_case(case, source, source.parent)


def _verdict(runs: RunsOfSize) -> str:
    if not runs.outcomes:
        return "no case succeeded"
    if runs.differing():
        return f"OUTCOMES DIFFER: {runs.outcomes}"
    first = next(iter(runs.outcomes.values()))
    return f"equal outcomes of {len(runs.outcomes)} cases: {first}"


def _recorded(runs: RunsOfSize) -> Mapping[str, object]:
    return {
        "bytes": runs.megabytes * 1e6,
        "runs": {case: [asdict(usage) for usage in usages] for case, usages in runs.usages.items()},
        "outcomes": {case: asdict(outcome) for case, outcome in runs.outcomes.items()},
    }
