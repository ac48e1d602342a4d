"""Fields of an experiment file with their defaults and rules, and the runs that an experiment plans.

A field's `description` completes the sentence "... must be ...", and its first example is a valid value. Messages show
both, as for topologies (infra/document.py).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from common.errors import ExperimentError
from infra.document import FieldError

_MAX_RANKS = 64

Kind = Literal["training", "words", "preprocessing"]
"""Kind of an experiment: it trains classifiers on a dataset, trains word embeddings on text, or preprocesses."""
Tokeniser = Literal["treebank", "punctuation", "spaces", "letters"]
Factor = Annotated[float, Field(ge=1, allow_inf_nan=False)]


class Part(BaseModel):
    """Base class of the parts of an experiment file. It rejects unknown fields, silent conversions and changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Text(Part):
    """Settings for reading the text of word embeddings (corpus/stream/stream_settings.py)."""

    tokeniser: Tokeniser = Field(
        default="punctuation", description=f"one of {', '.join(get_args(Tokeniser))}", examples=["treebank"]
    )
    keep_case: bool = Field(default=False, description="true or false", examples=[True])
    lemmatize: bool = Field(default=False, description="true or false", examples=[True])


class Local(Part):
    """How an arm runs on this machine. Exactly one field is set: `ranks` or `slow` for training, `workers` for
    preprocessing."""

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
    workers: int | None = Field(
        default=None, ge=1, le=1024, description="a number of cores for preprocessing, from 1 to 1024", examples=[2]
    )

    @model_validator(mode="after")
    def _has_exactly_one_form(self) -> Self:
        if sum(map(bool, (self.ranks, self.slow, self.workers))) != 1:
            raise ValueError("write exactly one of `ranks`, `slow` and `workers`.")
        return self

    @property
    def world_size(self) -> int:
        """Number of ranks of a training run."""
        return self.ranks or len(self.slow)

    @property
    def is_mixed(self) -> bool:
        """Whether the ranks differ in speed on purpose."""
        return len({*self.slow}) > 1


class Arm(Part):
    """One setting that an experiment compares."""

    name: str = Field(
        min_length=1,
        max_length=60,
        description="a text of at most 60 characters, with a letter or a digit",
        examples=["2 ranks"],
    )
    topology: str | None = Field(
        default=None, min_length=1, description="the name of a topology", examples=["reference-1g3"]
    )
    local: Local | None = Field(
        default=None, description="a mapping: the arm's ranks or cores on this machine", examples=["{ranks: 2}"]
    )
    settings: Mapping[str, Any] = Field(
        default_factory=dict, description="a mapping of options of `shoal train`", examples=["{hidden: 64}"]
    )
    share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="the share of the input's lines to preprocess, above 0 and at most 1",
        examples=[0.25],
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
        if self.topology is None and self.local is None:
            raise ValueError("the arm has no place to run; add `local`, such as `{ranks: 2}`, or a `topology`.")
        return self

    @property
    def folder(self) -> str:
        return _folder(self.name)


def _folder(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Experiment(Part):
    """Content of an experiment file."""

    about: str = Field(
        min_length=1, max_length=1000, description="a sentence that says what is compared", examples=["1 to 8 ranks"]
    )
    kind: Kind = Field(description="training, words or preprocessing", examples=["training"])
    repeats: int = Field(default=3, ge=1, le=100, description="a number of runs of each arm, from 1 to 100")
    settings: Mapping[str, Any] = Field(
        default_factory=dict, description="a mapping of options of `shoal train`", examples=["{epochs: 2}"]
    )
    text: Text | None = Field(
        default=None,
        description="a mapping of options for reading text",
        examples=["{tokeniser: treebank, lemmatize: true}"],
    )
    baseline: Annotated[tuple[str, ...], BeforeValidator(_as_list)] = Field(
        default=(),
        strict=False,
        description="the name of the arm that others are compared with, or a list: the first arm with finished runs",
        examples=["1 rank"],
    )
    max_price: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="the maximum cost of all runs in dollars", examples=[30]
    )
    arms: tuple[Arm, ...] = Field(
        strict=False,
        min_length=1,
        max_length=100,
        description="a list of arms",
        examples=["[{name: 1 rank, local: {ranks: 1}}]"],
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

    @model_validator(mode="after")
    def _fields_match_the_kind(self) -> Self:
        preprocesses = self.kind == "preprocessing"
        if preprocesses and self.settings:
            raise FieldError("settings apply only to training; leave them out.", "settings")
        if self.text is not None and self.kind != "words":
            raise FieldError("text applies only to `kind: words`; leave it out.", "text")
        for index, arm in enumerate(self.arms):
            if preprocesses and arm.settings:
                raise FieldError("settings apply only to training; leave them out.", "arms", index, "settings")
            if not preprocesses and arm.share is not None:
                raise FieldError(
                    "share applies only to preprocessing; to train on a share of the rows, write `settings: "
                    "{train_share: 0.25}`.",
                    "arms",
                    index,
                    "share",
                )
            if arm.local and preprocesses != (arm.local.workers is not None):
                fields = "`workers`" if preprocesses else "`ranks` or `slow`"
                raise FieldError(f"{self.kind} needs {fields} here.", "arms", index, "local")
        return self

    def settings_of(self, arm: Arm) -> dict[str, Any]:
        """Return the options of an arm's training runs: the shared settings, overridden by the arm's settings."""
        return {**self.settings, **arm.settings}


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    arm: Arm
    repeat: int
    """Number of the repeat, starting at 1."""
    folder: Path
    """Folder for the run's results."""


def planned_runs(arms: Sequence[Arm], repeats: int, output: Path) -> list[PlannedRun]:
    """Return all runs in order: the first run of each arm, then the second run of each arm, and so on.

    So changes of the machine over time (clock rate, other programs) affect all arms alike, and each round adds one
    result for each arm.
    """
    return [
        PlannedRun(arm=arm, repeat=repeat, folder=run_folder(output, arm, repeat))
        for repeat in range(1, repeats + 1)
        for arm in arms
    ]


def run_folder(output: Path, arm: Arm, repeat: int) -> Path:
    """Return the folder of an arm's run. `repeat` starts at 1."""
    return output / arm.folder / str(repeat)


def select_arms(experiment: Experiment, names: Sequence[str]) -> list[Arm]:
    """Return the arms with these names, or all arms if `names` is empty. Raises ExperimentError for an unknown name."""
    known = {arm.name: arm for arm in experiment.arms}
    for name in names:
        if name not in known:
            raise ExperimentError(f"--arms names '{name}', but the arms are {', '.join(map(repr, known))}")
    return [arm for arm in experiment.arms if not names or arm.name in names]
