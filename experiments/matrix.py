"""Experiment files: the arms that an experiment compares, and the command of each run.

A field's `description` completes the sentence "... must be ...", and its first example is a valid value. Messages show
both, as for topologies (infra/document.py).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from common.errors import ExperimentError
from common.options import flag
from infra import document
from infra.document import FieldError
from infra.topology import is_file
from infra.topology_error import TopologyError

_MAX_RANKS = 64
_RESERVED: Mapping[str, str] = {
    **dict.fromkeys(("output", "resume", "force", "json"), "leave it out, because the experiment sets it."),
    **dict.fromkeys(("data", "input"), "write it outside of the settings, because it is the same for all arms."),
    "seed": "leave it out, because each repeat has a different seed.",
    "local": "leave it out; an arm with `ranks` or `slow` runs on this machine.",
    "nodes": "write `ranks: 2` in the arm.",
    "slow": "write `slow: [1, 2]` in the arm.",
    "deployment": "write `deployment: NAME` in the arm.",
}
Factor = Annotated[float, Field(ge=1, allow_inf_nan=False)]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(strict=False)]


class _Part(BaseModel):
    """Base class of the parts of an experiment file. It rejects unknown fields, silent conversions and changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    settings: Mapping[str, Any] = Field(
        default_factory=dict, description="a mapping of options, each with a value or a list", examples=["{epochs: 2}"]
    )

    @field_validator("settings")
    @classmethod
    def _are_options(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        for name, value in settings.items():
            if sentence := _RESERVED.get(name.replace("-", "_")):
                raise FieldError(sentence, name)
            if not all(isinstance(each, str | int | float) for each in (value if isinstance(value, list) else [value])):
                raise FieldError("write a value, or a list of values.", name)
        return settings


class Arm(_Part):
    """One of the settings or places that an experiment compares. Exactly one of the fields of places is set."""

    name: str = Field(
        min_length=1,
        max_length=60,
        description="a text of at most 60 characters, with a letter or a digit",
        examples=["2 ranks"],
    )
    ranks: int | None = Field(
        default=None, ge=1, le=_MAX_RANKS, description=f"a number of ranks from 1 to {_MAX_RANKS}", examples=[2]
    )
    slow: tuple[Factor, ...] = Field(
        default=(),
        strict=False,
        max_length=_MAX_RANKS,
        description="a list with one slow-down factor of at least 1 for each rank",
        examples=["[1, 2]"],
    )
    deployment: str | None = Field(
        default=None, min_length=1, description="the name of a deployment", examples=["starter"]
    )

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not _folder(name):
            raise ValueError(
                f"'{name}' must have a letter or a digit, because it names a folder; choose a different name."
            )
        return name

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if sum(map(bool, (self.ranks, self.slow, self.deployment))) != 1:
            raise ValueError(
                "write exactly one of `ranks` and `slow`, to run on this machine, and `deployment`, to run there."
            )
        return self

    @property
    def folder(self) -> str:
        return _folder(self.name)

    @property
    def place(self) -> list[str]:
        """The words of the options that select the place."""
        if self.deployment:
            return ["--deployment", self.deployment]
        slowed = [f"{rank}:{factor:g}" for rank, factor in enumerate(self.slow) if factor > 1]
        return ["--local", "--nodes", str(self.ranks or len(self.slow)), *(["--slow", *slowed] if slowed else [])]


def _folder(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


class Experiment(_Part):
    """Content of an experiment file."""

    about: str = Field(
        min_length=1, max_length=1000, description="a sentence that says what is compared", examples=["1 to 8 ranks"]
    )
    verb: Literal["train", "embed"] = Field(description="train or embed", examples=["train"])
    repeats: int = Field(default=3, ge=1, le=100, description="a number of runs of each arm, from 1 to 100")
    data: str | None = Field(default=None, description="the path of a dataset", examples=["results/data/dataset.h5"])
    input: Names = Field(default=(), description="a list of files with texts", examples=["[reviews.csv]"])
    baseline: Names = Field(
        default=(),
        description="the name of the arm that others are compared with, or a list: the first arm with finished runs",
        examples=["1 rank"],
    )
    arms: tuple[Arm, ...] = Field(
        strict=False,
        min_length=1,
        max_length=100,
        description="a list of arms",
        examples=["[{name: 1 rank, ranks: 1}]"],
    )

    @field_validator("arms")
    @classmethod
    def _have_distinct_folders(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        for index, arm in enumerate(arms):
            for other in arms[:index]:
                if arm.folder == other.folder:
                    raise FieldError(
                        f"'{arm.name}' and '{other.name}' would have the same folder; give each a different name.",
                        index,
                        "name",
                    )
        return arms

    @model_validator(mode="after")
    def _baselines_are_arms(self) -> Self:
        names = [arm.name for arm in self.arms]
        for name in self.baseline:
            if name not in names:
                raise FieldError(f"there is no arm '{name}'; the arms are {', '.join(names)}.", "baseline")
        return self


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    arm: Arm
    repeat: int
    """Number of the repeat, starting at 1. It is also the seed."""
    folder: Path
    """Folder for the run's results."""
    words: Sequence[str]
    """Command of the run, without `shoal`."""

    @property
    def label(self) -> str:
        return f"'{self.arm.name}', repeat {self.repeat}"


def read_experiment(given: str) -> Experiment:
    """Read an experiment. `given` is a path that ends in .yaml or .yml, or the name of a file in this folder.

    Raises ExperimentError, which names the file, line and field.
    """
    path, shipped = Path(given), {each.stem: each for each in sorted(Path(__file__).parent.glob("*.yaml"))}
    if not is_file(given):
        if given not in shipped:
            raise ExperimentError(
                f"There is no experiment '{given}'; Shoal has: {', '.join(shipped)}. To run your own experiment, give "
                "the path of its file."
            )
        path = shipped[given]
    try:
        source = document.read(path, given, "an experiment")
        try:
            return Experiment.model_validate(source.data)
        except ValidationError as error:
            raise source.invalid(Experiment, error) from None
    except TopologyError as error:
        raise ExperimentError(str(error)) from None


def plan_runs(
    experiment: Experiment, output: Path, *, names: Sequence[str] = (), given: Sequence[str] = ()
) -> list[PlannedRun]:
    """Return the runs of the arms with these names (default: all arms): the first run of each arm, then the second run
    of each arm, and so on.

    So changes of the machine over time (clock rate, other programs) affect all arms alike, and each round adds one
    result for each arm. `given` are further words of each command. Raises ExperimentError for an unknown arm.
    """
    known = [arm.name for arm in experiment.arms]
    for name in names:
        if name not in known:
            raise ExperimentError(f"--arms names '{name}', but the arms are {', '.join(map(repr, known))}")
    arms = [arm for arm in experiment.arms if not names or arm.name in names]
    source = [] if {"--data", "--input"} & {*given} else _words({"data": experiment.data, "input": experiment.input})
    runs = []
    for repeat in range(1, experiment.repeats + 1):
        for arm in arms:
            folder = output / arm.folder / str(repeat)
            options = _words({**experiment.settings, **arm.settings, "seed": repeat, "output": str(folder)})
            words = [experiment.verb, *arm.place, *options, *source, *given]
            runs.append(PlannedRun(arm=arm, repeat=repeat, folder=folder, words=words))
    return runs


def _words(options: Mapping[str, Any]) -> list[str]:
    """Return the words of options on a command line. True stands for a flag. False, None and () are left out."""
    words: list[str] = []
    for name, value in options.items():
        if value is not None and value is not False and value != ():
            values = () if value is True else value if isinstance(value, list | tuple) else (value,)
            words += [flag(name), *map(str, values)]
    return words
