"""Options that every run has: data, output, model, computation and balancing."""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from common.errors import TrainingError
from common.json_values import Bound
from trainer.options.section import AT_LEAST_0, Section, from_1_to, option
from trainer.registry import MODELS, PRESETS

_CHECKPOINT_SECONDS = (15.0, 300.0)
_WRITING_SHARE = 0.01


def seconds_between_checkpoints(minutes: float, writing: float) -> float:
    """Return the seconds between two checkpoints.

    `minutes`: the value of `--checkpoint-minutes`. `writing`: the seconds that writing a checkpoint takes.
    """
    least, most = _CHECKPOINT_SECONDS
    return 60 * minutes or min(max(writing / _WRITING_SHARE, least), most)


_MOST_SLOWED = 1_000_000


def parse_slowdown(text: str) -> tuple[int, float]:
    """Parse RANK:FACTOR to the rank and the factor. Raises ArgumentTypeError if the text has a different form."""
    rank, _, factor = text.partition(":")
    try:
        return int(rank), float(factor)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not RANK:FACTOR, such as 1:2.0") from None


@dataclass(frozen=True, kw_only=True)
class DataOptions(Section):
    """Options for the dataset, and for the place where ranks keep its rows."""

    title: ClassVar[str] = "data"

    data: Path = option("dataset: an HDF5 file that `shoal preprocess` wrote", metavar="FILE")
    cache: Path | None = option(
        "folder for data that later runs reuse: datasets of raw texts, and unpacked rows (default: a private folder "
        "below the system's folder for temporary files)",
        default=None,
        metavar="DIR",
    )


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Section):
    title: ClassVar[str] = "task"

    preset: str | None = option(
        "start from the settings and the kind of model of another system; options that are given take precedence",
        default=None,
        choices=tuple(PRESETS),
    )
    model: str = option("kind of model", choices=tuple(MODELS), advanced=False)
    seed: int = option("seed of the initial weights, the order of rows, and dropout", default=0, must=AT_LEAST_0)


@dataclass(frozen=True, kw_only=True)
class ComputeOptions(Section):
    title: ClassVar[str] = "compute"

    precision: str = option(
        "precision of the layers; bfloat16 and float16 need GPUs. auto: bfloat16 or float16 if it is fast on all "
        "GPUs, else float32",
        default="auto",
        choices=("auto", "float32", "bfloat16", "float16"),
        internal=True,
    )
    threads: int | None = option(
        "CPU threads of a rank (default: the machine's cores, shared among its ranks)",
        default=None,
        must=from_1_to(1024),
    )


@dataclass(frozen=True, kw_only=True)
class BalanceOptions(Section):
    """Options for the split of each step over the ranks."""

    title: ClassVar[str] = "balance"

    balance: str = option(
        "how to split each step's rows over ranks. steps: in proportion to their speeds, measured during the run; "
        "epoch:X: in proportion to their speeds over the last X epochs, like the reference system; off: equally; "
        "3,1,1: in fixed shares, one for each rank",
        default="steps",
        metavar="HOW",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        from shoal_balance import parse_balance  # imports numpy, which `--help` does not need

        try:
            parse_balance(self.balance)
        except ValueError as error:
            raise TrainingError(f"--balance is {self.balance}, but {error}") from error


@dataclass(frozen=True, kw_only=True)
class OutputOptions(Section):
    """Options for the output folder, and for how often the run writes to it."""

    title: ClassVar[str] = "output"

    output: Path = option(
        "folder for the model (model/), record.jsonl, summary.json and checkpoints", metavar="DIR", advanced=False
    )
    checkpoint_minutes: float = option(
        "minutes between two checkpoints; 0: an interval of 15 seconds to 5 minutes, so that writing checkpoints "
        "takes about a hundredth of the time",
        default=0.0,
        must=AT_LEAST_0,
    )
    resume: bool = option(
        "continue from the latest checkpoint in --output, if there is one, with any number of ranks",
        default=False,
        advanced=False,
    )
    force: bool = option(
        "train again although --output contains a finished model; the model is replaced at the end",
        default=False,
        advanced=False,
    )


@dataclass(frozen=True, kw_only=True)
class DebuggingOptions(Section):
    """Options for tests of unequal ranks on equal hardware."""

    title: ClassVar[str] = "debugging"

    slow: Mapping[int, float] = option(
        "slow down a rank by FACTOR with a sleep, to test the balancer on equal hardware",
        factory=dict,
        must=Bound(
            f"a rank from 0 and a factor from 1 to {_MOST_SLOWED:,}",
            lambda slow: all(rank >= 0 and 1 <= factor <= _MOST_SLOWED for rank, factor in slow.items()),
        ),
        metavar="RANK:FACTOR",
        kind=parse_slowdown,
        several=True,
    )
