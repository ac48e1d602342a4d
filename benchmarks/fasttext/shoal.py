"""Runs Shoal's commands in separate processes, with their cost."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.meter import Usage, metered
from common.errors import ShoalError
from trainer.output.run_files import SUMMARY

_MEMORY, _SECONDS = 16 << 30, 6 * 3600.0


class Case(NamedTuple):
    """Options of a training run, its number of ranks, and the threads of each rank."""

    options: tuple[str, ...] = ()
    ranks: int = 1
    threads: int = 1

    @property
    def arguments(self) -> tuple[str, ...]:
        return (f"--nodes={self.ranks}", f"--threads={self.threads}", *self.options)


class Trained(NamedTuple):
    """Summary of a training (trainer/output/reporter.py), and cost of the whole command."""

    summary: Mapping[str, Any]
    usage: Usage


def train(output: Path, *arguments: str, verb: str = "train") -> Trained:
    """Run `shoal train --local`, or `shoal embed`, with these arguments. Raises ShoalError if it fails."""
    command = [
        sys.executable,
        "-m",
        "shoal.cli.main",
        verb,
        "--local",
        "--force",
        "--output",
        str(output),
        *arguments,
    ]
    usage = metered(command, output.with_suffix(".log"), memory_limit=_MEMORY, time_limit=_SECONDS)
    if usage.failed:
        raise ShoalError(f"{' '.join(command)} failed: {usage.failed}")
    return Trained(json.loads((output / SUMMARY).read_text()), usage)
