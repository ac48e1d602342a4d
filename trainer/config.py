"""What a training run can be told, and the command line that tells it.

Importing this module never imports torch: the `shoal` command reuses the options (`add_arguments`, `from_args`,
`as_arguments`) on machines that do not train. A rank's environment must be set before its process starts:
whoever launches ranks applies `RANK_ENVIRONMENT`.
"""

import argparse
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from trainer.balance import parse as parse_balance
from trainer.errors import TrainingError
from trainer.kinds import MODELS

RANK_ENVIRONMENT: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": "2000000000",
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}
"""Keeps glibc from giving each step's memory back and asking for it again, which makes CPU ranks up to twice as slow
and their time no longer linear in rows. torch itself has one thread: a rank's threads are its own (threads.py). And no
module comes from the folder where a rank is started, which may hold anybody's files."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "reference": {
        "rank_batch": 128,
        "epochs": 10,
        "optimiser": "sgd",
        "learning_rate": 0.1,
        "word_rate": 1.0,
        "rate_scaling": "none",
        "momentum": 0.9,
        "schedule": "constant",
        "warm_up": 0.0,
        "clip_norm": 0.0,
        "embedding": 100,
        "hidden": 32,
        "layers": 2,
        "pooling": "last",
        "dropout": 0.5,
        "embedding_dropout": 0.0,
        "word_dropout": 0.0,
        "loss": "bce",
        "positive_weight": 0.2,
    },
}
"""Settings under one name; options given beside a preset win over it."""

OF_THE_RUN = ("global_batch", "rank_batch", "epochs")
"""Settings that a run which goes on keeps as they were, unless they are given: a preset does not give them."""

_WIDEST, _DEEPEST = 8192, 64
"""Of a model: what a model file claims must not fill the memory, and nobody trains more on reviews."""

GLOBAL_BATCH = 256

ENOUGH_STEPS, FEWEST_EPOCHS, MOST_EPOCHS = 500, 6, 24
"""Small datasets have few steps in an epoch, and a model whose texts lose half of their words learns slowly."""
FEWEST_STEPS = 192
"""A model learns next to nothing in fewer, however often these show it each row."""

NEEDS_GPU = "SHOAL_NEEDS_GPU"
"""An environment variable: where it is set, a rank that finds no GPU fails, and does not compute on the CPU."""


class Slowed(NamedTuple):
    """How many times slower a rank is made."""

    factor: float
    later: float | None = None
    """The factor after some steps, where it changes."""
    step: int = 0
    """How many steps of the run that is."""

    def at(self, step: int) -> float:
        """The factor for a step of the run, from 0."""
        return self.factor if self.later is None or step < self.step else self.later

    def __str__(self) -> str:
        return f"{self.factor}" if self.later is None else f"{self.factor}@{self.step}:{self.later}"


def _option(text: str, **how: Any) -> Any:
    """A field whose text is both its documentation and its line in --help; `also` are other names of the option."""
    default = how.pop("default")
    made = {"default_factory": default} if callable(default) else {"default": default}
    return field(**made, metadata={"help": text, **how})


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run. Each field's meaning is its help text; raises TrainingError for values that cannot be."""

    data: Path = field(metadata={"help": "the dataset, an HDF5 file made by `shoal preprocess`", "metavar": "FILE"})
    output: Path = field(
        metadata={"help": "folder for model.pt, record.jsonl, summary.json and checkpoints", "metavar": "DIR"}
    )
    preset: str | None = _option(
        "start from the settings of the reference system (2 x 32 LSTM, SGD); other options still count",
        default=None,
        choices=tuple(PRESETS),
    )
    model: str = _option("the kind of model", default="lstm", choices=tuple(MODELS))
    epochs: int | None = _option(
        f"times that every training row is seen (default: as many as make {ENOUGH_STEPS} steps, but at least "
        f"{FEWEST_EPOCHS} and at most {MOST_EPOCHS}; more than {MOST_EPOCHS} only where these are fewer than "
        f"{FEWEST_STEPS} steps; with --resume the run's). Where --resume changes it, the learning rate is from there "
        "on that of a run with so many epochs",
        default=None,
    )
    global_batch: int | None = _option(
        f"rows a step, over all ranks together, however many there are (default: {GLOBAL_BATCH}, or with --resume the "
        "run's)",
        default=None,
        also=("--batch-size",),
    )
    rank_batch: int | None = _option(
        "instead of --global-batch: rows a step and rank, so that more ranks make larger steps; but a run that goes on "
        "keeps its steps",
        default=None,
    )
    learning_rate: float = _option("the step size at its highest", default=8e-3, also=("--lr",))
    word_rate: float = _option(
        "the learning rate of word vectors, as a multiple of --learning-rate; below 1 those of rare words learn less "
        "by heart",
        default=0.25,
    )
    rate_scaling: str = _option(
        "--learning-rate is meant for a global batch of 256; for others it is multiplied by batch / 256 (linear, as "
        "suits sgd), by the square root of that (as suits adam), or left alone (none)",
        default="root",
        choices=("root", "linear", "none"),
    )
    optimiser: str = _option(
        "how gradients become steps", default="adam", choices=("adam", "sgd"), also=("--optimizer",)
    )
    momentum: float = _option("momentum of sgd", default=0.9)
    schedule: str = _option(
        "the learning rate after its warm-up: constant, or falling to 0 along a cosine",
        default="cosine",
        choices=("cosine", "constant"),
    )
    warm_up: float = _option("share of all steps in which the learning rate rises to its height", default=0.05)
    clip_norm: float = _option("shorten gradients longer than this; 0: never", default=1.0)
    precision: str = _option(
        "numbers that layers compute with; auto: bfloat16 or float16 where all GPUs of the run are fast in it",
        default="auto",
        choices=("auto", "float32", "bfloat16", "float16"),
    )
    gradient_bits: int = _option(
        "bits of a number in which ranks send each other gradients; 16 halves what a slow network carries",
        default=32,
        choices=(32, 16),
    )
    embedding: int = _option("dimensions of a word vector", default=64)
    hidden: int = _option("dimensions of the LSTM's state", default=32)
    layers: int = _option("LSTM layers", default=1)
    pooling: str = _option(
        "the vector of a text: of its words' states the mean and the largest of each dimension, beside the mean of the "
        "words' own vectors (mean+max+words), some of these, or the state after its last word",
        default="mean+max+words",
        choices=("mean+max+words", "mean+words", "mean", "last"),
    )
    dropout: float = _option("share of values dropped between LSTM layers and before the last layer", default=0.3)
    embedding_dropout: float = _option("share of dimensions dropped from a text's word vectors", default=0.5)
    word_dropout: float = _option(
        "share of words dropped from a text, each time it is seen; four are left at least", default=0.5
    )
    loss: str = _option(
        "what is made small: cross-entropy of the ratings (of the labels where the dataset has no ratings) or of the "
        "labels (bce), or the squared error of the rating (mse)",
        default="cross-entropy",
        choices=("bce", "cross-entropy", "mse"),
    )
    positive_weight: float | None = _option(
        "weight of a positive row in the loss; 1: that of a negative one (default: the fourth root of negatives / "
        "positives)",
        default=None,
    )
    seed: int = _option("where initial weights, the order of rows, and dropout come from", default=0)
    balance: str = _option(
        "how each step's rows are split. steps: by the ranks' speeds, measured during the run; epoch:X: by their "
        "speeds over the last X epochs, as the reference system did; off: equally; 3,1,1: fixed shares, one a rank",
        default="steps",
        metavar="HOW",
    )
    rebalance_every: int = _option("steps between two looks at the speeds", default=10)
    slow: Mapping[int, Slowed] = _option(
        "make a rank FACTOR times slower by letting it sleep: how to try the balancer on equal hardware; "
        "RANK:FACTOR@STEP:LATER changes to another factor after so many steps",
        default=dict,
        nargs="+",
        metavar="RANK:FACTOR",
    )
    record_every: int = _option(
        "steps between two lines of record.jsonl, which are also half a second apart, and at most five where steps are "
        "slow; 1: every step, however quick",
        default=10,
    )
    checkpoint_minutes: float = _option("minutes between two checkpoints", default=5.0)
    resume: bool = _option(
        "go on from the newest checkpoint in --output, if there is one, with any number of ranks", default=False
    )
    force: bool = _option(
        "train anew where --output holds a finished model; the new one takes its place at the end", default=False
    )
    rows_in: str = _option(
        "where ranks have the rows: in memory, in memory and on the device that computes (device), or unpacked on the "
        "disk of each machine; auto: on disk when all ranks' rows would fill half of a machine's free memory, else in "
        "memory, and on a GPU besides when they fill no more than half of its",
        default="auto",
        choices=("auto", "device", "memory", "disk"),
    )
    cache: Path | None = field(
        default=None,
        metadata={
            "help": "folder for unpacked rows, which the next run on the same dataset finds there (default: one of the "
            "user's own under the temporary files')",
            "metavar": "DIR",
        },
    )
    threads: int | None = _option(
        "CPU threads of a rank (default: the machine's cores, shared among its ranks)", default=None
    )

    def __post_init__(self) -> None:
        for name in ("rebalance_every", "record_every"):
            self._require(name, getattr(self, name) >= 1, "at least 1")
        for name, most in (("embedding", _WIDEST), ("hidden", _WIDEST), ("layers", _DEEPEST)):
            self._require(name, 1 <= getattr(self, name) <= most, f"from 1 to {most}")
        for name in ("epochs", "global_batch", "rank_batch", "threads"):
            self._require(name, getattr(self, name) is None or getattr(self, name) >= 1, "at least 1")
        if self.global_batch is not None and self.rank_batch is not None:
            raise TrainingError(
                "--global-batch and --rank-batch contradict each other: one is the rows of a step over all ranks, the "
                "other those of each; give one"
            )
        for entry in fields(self):
            value = getattr(self, entry.name)
            self._require(entry.name, not isinstance(value, float) or math.isfinite(value), "a finite number")
        for name in ("learning_rate", "word_rate", "checkpoint_minutes"):
            self._require(name, getattr(self, name) > 0, "above 0")
        for name in ("clip_norm", "seed"):
            self._require(name, getattr(self, name) >= 0, "at least 0")
        for name in ("momentum", "warm_up", "dropout", "embedding_dropout", "word_dropout"):
            self._require(name, 0 <= getattr(self, name) < 1, "at least 0 and below 1")
        self._require("positive_weight", self.positive_weight is None or self.positive_weight > 0, "above 0")
        for entry in fields(self):
            allowed = entry.metadata.get("choices")
            if allowed and getattr(self, entry.name) is not None:
                self._require(
                    entry.name, getattr(self, entry.name) in allowed, f"one of {', '.join(map(str, allowed))}"
                )
        try:
            parse_balance(self.balance)
        except ValueError as error:
            raise TrainingError(f"--balance is {self.balance}, but {error}") from error
        for rank, (factor, later, step) in self.slow.items():
            fits = rank >= 0 and step >= 0 and all(1 <= each < math.inf for each in (factor, later or 1.0))
            self._require("slow", fits, "a rank from 0 and a factor of at least 1")

    def _require(self, name: str, holds: bool, rule: str) -> None:
        if not holds:
            raise TrainingError(f"{_flag(name)} is {self.plain()[name]}, but must be {rule}")

    def batch_for(self, world_size: int) -> int:
        """Rows of a global batch."""
        return self.rows_asked(world_size) or GLOBAL_BATCH

    def rows_asked(self, world_size: int) -> int | None:
        """Rows of a global batch as far as they were asked for."""
        return self.rank_batch * world_size if self.rank_batch else self.global_batch

    def epochs_of(self, steps: int) -> int:
        """How many epochs of so many steps there are to be."""
        most = max(MOST_EPOCHS, -(-FEWEST_STEPS // steps))
        return self.epochs or min(max(-(-ENOUGH_STEPS // steps), FEWEST_EPOCHS), most)

    def model_settings(self, *, words: int, outputs: int) -> dict[str, Any]:
        """What `models.build` needs besides the name, for so many ids and numbers a row."""
        names = ("embedding", "hidden", "layers", "pooling", "dropout", "embedding_dropout")
        return {"words": words, "outputs": outputs, **{name: getattr(self, name) for name in names}}

    def plain(self) -> dict[str, Any]:
        """The fields in types that JSON and checkpoints can hold."""
        return {
            **asdict(self),
            "data": str(self.data),
            "output": str(self.output),
            "cache": str(self.cache) if self.cache else None,
            "slow": {str(rank): str(slowed) for rank, slowed in self.slow.items()},
        }


def add_arguments(parser: argparse.ArgumentParser, leave_out: Collection[str] = ()) -> None:
    """Add every field as an option, but for those that the caller declares otherwise."""
    for entry in fields(TrainConfig):
        if entry.name in leave_out:
            continue
        required = entry.name in ("data", "output")
        how: dict[str, Any] = {key: value for key, value in entry.metadata.items() if key not in ("help", "also")}
        text = entry.metadata["help"]
        if entry.type is bool:
            how["action"] = "store_true"
        else:
            how["type"] = _parser_of(entry.type)
        if entry.name == "slow":
            how["action"] = "extend"
        elif not (required or entry.default is None or entry.default is False):
            text += f" (default: {entry.default})"
        flags = (_flag(entry.name), *entry.metadata.get("also", ()))
        parser.add_argument(*flags, required=required, default=argparse.SUPPRESS, help=text, **how)


def from_args(args: argparse.Namespace) -> TrainConfig:
    """The configuration that parsed arguments ask for. Raises TrainingError for values that cannot be."""
    given = {entry.name: getattr(args, entry.name) for entry in fields(TrainConfig) if entry.name in args}
    if "slow" in given:
        given["slow"] = dict(given["slow"])
    if "global_batch" in given:
        given.setdefault("rank_batch", None)
    preset = given.pop("preset", None)
    told = given.keys().isdisjoint(OF_THE_RUN)
    return TrainConfig(**{**PRESETS.get(preset or "", {}), **given}, preset=preset if told else None)


def as_arguments(config: TrainConfig) -> list[str]:
    """The command line that `from_args` reads as this configuration, for a launcher to pass on to its ranks."""
    line: list[str] = []
    for entry in fields(config):
        value = getattr(config, entry.name)
        if config.preset and entry.name in OF_THE_RUN:
            continue
        if value is True:
            line.append(_flag(entry.name))
        elif entry.name == "slow":
            line += [_flag("slow"), *(f"{rank}:{slowed}" for rank, slowed in value.items())] if value else []
        elif value is not None and value is not False:
            line += [_flag(entry.name), str(value)]
    return line


def parse(arguments: Sequence[str] | None = None) -> TrainConfig:
    """The configuration of a command line; wrong use ends the process with status 2, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Train a sentiment model on a dataset. Started by torchrun, it runs on all ranks; without, on one.",
        epilog="Several ranks on this machine: python -m torch.distributed.run --standalone --nproc-per-node 2 "
        "-m trainer --data dataset.h5 --output results",
    )
    add_arguments(parser)
    try:
        return from_args(parser.parse_args(arguments))
    except TrainingError as error:
        parser.error(str(error))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parser_of(annotation: Any) -> Any:
    parsers: dict[Any, Any] = {Path: Path, str: str, int: int, float: float}
    parsers |= {Path | None: Path, int | None: int, float | None: float, str | None: str, Mapping[int, Slowed]: _slowed}
    return parsers[annotation]


def _slowed(text: str) -> tuple[int, Slowed]:
    rank, _, factors = text.partition(":")
    factor, _, change = factors.partition("@")
    step, _, later = change.partition(":")
    try:
        if change:
            return int(rank), Slowed(float(factor), float(later), int(step))
        return int(rank), Slowed(float(factor))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not RANK:FACTOR, such as 1:2.0, or RANK:FACTOR@STEP:LATER, such as 1:1.0@300:2.0"
        ) from None
