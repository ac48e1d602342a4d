"""Whether preprocessing has become slower: this working tree against the last release, as a ratio of CPU seconds.

    python -m benchmarks regression [--against COMMIT] [--mb 200] [--pairs 8]

Pairs of runs are made in turns, each pair in the other order than the one before: what slows the machine then changes
the ratios' spread, and hardly their mean. The release is the first commit with this version;
its files are taken from git into a temporary folder, and run with the libraries that are installed here. It exits with
1 where the mean ratio is above 1.05 by more than two standard errors.
"""

import argparse
import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.generated import write_reviews
from benchmarks.meter import Usage, metered
from benchmarks.record import Log
from common.errors import ShoalError
from common.version import VERSION

_PROJECT = Path(__file__).parents[1]
_MEMORY_LIMIT, _TIME_LIMIT = 8_000_000_000, 3600.0
_TOLERANCE = 0.05


def release(repository: Path, version: str) -> str:
    """The first commit that had this version. Raises ShoalError where there is none."""
    places = ("pyproject.toml", "corpus/version.py", "common/version.py")
    pattern = f'^(version|VERSION) = "{re.escape(version)}"$'
    commits = _git(repository, "log", "--format=%H", f"-G{pattern}", "--", *places).decode().split()
    if not commits:
        raise ShoalError(f"no commit of {repository} has set the version {version}; name one by --against")
    return commits[-1]


def unpack(repository: Path, commit: str, folder: Path) -> None:
    """Write the files of a commit to `folder`. Raises ShoalError where git does not know the commit."""
    with tarfile.open(fileobj=io.BytesIO(_git(repository, "archive", commit))) as archive:
        safely: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
        archive.extractall(folder, **safely)  # noqa: S202


def _git(repository: Path, *arguments: str) -> bytes:
    ran = subprocess.run(["git", "-C", os.fspath(repository), *arguments], capture_output=True)
    if ran.returncode:
        raise ShoalError(f"git {' '.join(arguments)}: {ran.stderr.decode('utf-8', 'replace').strip()}")
    return ran.stdout


def slower(ratios: Sequence[float]) -> bool:
    """Whether the mean of the ratios is above the tolerance by two standard errors."""
    return mean(ratios) - 2 * _standard_error(ratios) > 1 + _TOLERANCE


def _standard_error(ratios: Sequence[float]) -> float:
    return stdev(ratios) / sqrt(len(ratios))


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for; exits with 1 when this working tree is slower."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks regression", description=__doc__.partition("\n")[0])
    parser.add_argument("--against", metavar="COMMIT", help="default: the first commit with this version")
    parser.add_argument("--mb", type=int, default=200, help="size of the file (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=8, help="pairs of runs (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.pairs < 2:
        parser.error("--pairs must be at least 2, because one pair has no spread")
    commit = options.against or release(_PROJECT, VERSION)
    log = Log("regression")
    with TemporaryDirectory() as name:
        folder = Path(name)
        unpack(_PROJECT, commit, folder / "before")
        source = folder / "reviews.json"
        trees = [folder / "before", _PROJECT]
        write_reviews(source, 2_000_000)  # fills the caches of compiled code
        for tree in trees:
            preprocess_by(tree, source, folder)
        write_reviews(source, options.mb * 1_000_000)
        log.say(f"\n{options.mb} MB, this working tree against {commit[:12]}; CPU seconds\n")
        pairs = []
        for number in range(options.pairs):
            order = trees if number % 2 else trees[::-1]
            usages = {tree: preprocess_by(tree, source, folder) for tree in order}
            pairs.append([usages[tree] for tree in trees])
            before, now = pairs[-1]
            log.say(f"{before.cpu:.2f} before, {now.cpu:.2f} now: {now.cpu / before.cpu:.3f}")
    ratios = [now.cpu / before.cpu for before, now in pairs]
    log.say(
        f"\nratio {mean(ratios):.3f} ± {_standard_error(ratios):.3f} (mean of {len(ratios)} pairs and its standard "
        f"error; {min(ratios):.3f} to {max(ratios):.3f})"
    )
    log.keep({"against": commit, "mb": options.mb, "pairs": [[asdict(usage) for usage in pair] for pair in pairs]})
    if slower(ratios):
        sys.exit(f"preprocessing takes {mean(ratios):.2f} times as many CPU seconds as in {commit[:12]}")


def preprocess_by(tree: Path, source: Path, folder: Path) -> Usage:
    """Preprocess the file by the code in `tree`, to the reference's dataset. Raises ShoalError where that fails."""
    shoal = [sys.executable, "-P", "-m", "bootstrap.cli.main"]  # not the code where this is run
    settings = tree / "jobs" / "job_settings.py"
    knows = settings.exists() and "PRESET" in settings.read_text()  # else these are the defaults
    with TemporaryDirectory(dir=folder) as output:
        usage = metered(
            ["env", f"PYTHONPATH={tree}", *shoal, "preprocess", "--local", "--input", str(source), "--output", output]
            + ["--preset=reference"] * knows,
            folder / "log",
            memory_limit=_MEMORY_LIMIT,
            time_limit=_TIME_LIMIT,
        )
    if usage.failed:
        raise ShoalError(f"preprocessing failed in {tree}: {usage.failed}")
    return usage
