"""The parts of an experiment's file: their fields, defaults and rules.

A field's `description` completes the sentence "... must be ...", and its first example is a valid value; messages show
both, as those of topologies do (infra/document.py).
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from infra.document import FieldError
from trainer.classification.metrics import MEASURES, MEASURES_OF_TWO
from trainer.options.embedding_options import PIP_LOSS, PIP_MEAN_SQUARE, WORD_MEASURES

_MOST_RANKS = 64
_OF_CLASSIFIERS = (*MEASURES, *MEASURES_OF_TWO)
_BETTER_WHEN_LOW = (PIP_LOSS, PIP_MEAN_SQUARE)

Kind = Literal["training", "words", "preprocessing"]
"""Of trainings those of models that classify texts, from a dataset, and those of word embeddings, from text."""
Tokeniser = Literal["treebank", "punctuation", "spaces", "letters"]
Factor = Annotated[float, Field(ge=1, allow_inf_nan=False)]


class Part(BaseModel):
    """What all parts have in common: no unknown field, no silent conversion, no change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Target(Part):
    """What a training is to reach; the time to it is compared."""

    loss: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="a loss above 0, of the training rows", examples=[0.3]
    )
    measure: str | None = Field(
        default=None, description="the name of a measure on the validation rows", examples=["accuracy"]
    )
    at_least: float | None = Field(default=None, allow_inf_nan=False, description="a number", examples=[0.9])
    at_most: float | None = Field(default=None, allow_inf_nan=False, description="a number", examples=[120])

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        low = self.measure in _BETTER_WHEN_LOW
        limits = (self.at_least is not None, self.at_most is not None)
        if (self.loss is None) == (self.measure is None) or limits != (bool(self.measure) and not low, low):
            raise ValueError(
                "write either `loss: 0.3`, or `measure: accuracy` with `at_least: 0.9`, or `measure: pip_loss` with "
                "`at_most: 120`."
            )
        return self

    @field_validator("measure")
    @classmethod
    def _that_trainings_record(cls, measure: str | None) -> str | None:
        known = (*_OF_CLASSIFIERS, *WORD_MEASURES)
        if measure is not None and measure not in known:
            raise ValueError(f"'{measure}' is no measure of a training; take one of {', '.join(known)}.")
        return measure

    def is_reached(self, value: object) -> bool:
        """Whether a measure of this value is good enough; what is no number is not."""
        if not isinstance(value, int | float):
            return False
        return value <= self.at_most if self.at_most is not None else value >= (self.at_least or 0.0)

    def __str__(self) -> str:
        """The target in words."""
        if self.loss is not None:
            return f"a loss of {self.loss:g}"
        return f"{self.measure} of {self.at_least if self.at_most is None else self.at_most:g}"


class Text(Part):
    """How the text is read from which word embeddings are learnt (corpus/stream/stream_settings.py)."""

    tokeniser: Tokeniser = Field(
        default="punctuation", description=f"one of {', '.join(get_args(Tokeniser))}", examples=["treebank"]
    )
    keep_case: bool = Field(default=False, description="true or false", examples=[True])
    lemmatize: bool = Field(default=False, description="true or false", examples=[True])


class Local(Part):
    """What an arm is on this machine: of a training `ranks` or `slow`, of preprocessing `workers`."""

    ranks: int | None = Field(
        default=None, ge=1, le=_MOST_RANKS, description=f"a number of ranks from 1 to {_MOST_RANKS}", examples=[2]
    )
    slow: tuple[Factor, ...] = Field(
        default=(),
        strict=False,
        max_length=_MOST_RANKS,
        description="a list with a factor of at least 1 for each rank, by which it is slowed down",
        examples=["[1, 2]"],
    )
    workers: int | None = Field(
        default=None, ge=1, le=1024, description="a number of cores to preprocess with, from 1 to 1024", examples=[2]
    )

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum(map(bool, (self.ranks, self.slow, self.workers))) != 1:
            raise ValueError("write one of `ranks`, `slow` and `workers`.")
        return self

    @property
    def world_size(self) -> int:
        """Ranks of a training."""
        return self.ranks or len(self.slow)

    @property
    def is_mixed(self) -> bool:
        """Whether the ranks differ in speed on purpose."""
        return len({*self.slow}) > 1


class Arm(Part):
    """One of the things that an experiment compares."""

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
        default=None, description="what it is on this machine: a mapping", examples=["{ranks: 2}"]
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
    def _can_be_a_folder(cls, name: str) -> str:
        if not _folder(name):
            raise ValueError(f"'{name}' has no letter and no digit, and folders are named by it; write another.")
        return name

    @model_validator(mode="after")
    def _runs_somewhere(self) -> Self:
        if self.topology is None and self.local is None:
            raise ValueError("it says nowhere what to run it on; add `local`, such as `{ranks: 2}`, or a `topology`.")
        return self

    @property
    def folder(self) -> str:
        return _folder(self.name)


def _folder(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Experiment(Part):
    """An experiment's file."""

    about: str = Field(
        min_length=1, max_length=1000, description="a sentence on what is compared", examples=["1 to 8 ranks"]
    )
    kind: Kind = Field(description="training, words or preprocessing", examples=["training"])
    repeats: int = Field(default=3, ge=1, le=100, description="a number of runs of each arm, from 1 to 100")
    settings: Mapping[str, Any] = Field(
        default_factory=dict, description="a mapping of options of `shoal train`", examples=["{epochs: 2}"]
    )
    text: Text | None = Field(
        default=None, description="how text is read: a mapping", examples=["{tokeniser: treebank, lemmatize: true}"]
    )
    target: Target | None = Field(
        default=None, description="what the trainings are to reach: a mapping", examples=["{loss: 0.3}"]
    )
    baseline: Annotated[tuple[str, ...], BeforeValidator(_as_list)] = Field(
        default=(),
        strict=False,
        description="the name of the arm to which others are compared, or a list: the first that has runs",
        examples=["1 rank"],
    )
    max_price: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="the most dollars that all runs may cost", examples=[30]
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
    def _folders_of_their_own(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        for index, arm in enumerate(arms):
            for other in arms[:index]:
                if arm.folder == other.folder:
                    raise FieldError(
                        f"'{arm.name}' and '{other.name}' would have the same folder; give each a name of its own.",
                        index,
                        "name",
                    )
        return arms

    @model_validator(mode="after")
    def _baselines_are_arms(self) -> Self:
        names = [arm.name for arm in self.arms]
        for name in self.baseline:
            if name not in names:
                raise FieldError(f"there is no arm '{name}'; there are {', '.join(names)}.", "baseline")
        return self

    @model_validator(mode="after")
    def _fields_of_the_kind(self) -> Self:
        preprocesses = self.kind == "preprocessing"
        if preprocesses and self.target is not None:
            raise FieldError("goes with trainings; leave it out.", "target")
        if preprocesses and self.settings:
            raise FieldError("are those of trainings; leave them out.", "settings")
        for index, arm in enumerate(self.arms):
            if preprocesses and arm.settings:
                raise FieldError("are those of trainings; leave them out.", "arms", index, "settings")
            if not preprocesses and arm.share is not None:
                raise FieldError(
                    "goes with preprocessing; write `settings: {train_share: 0.25}`.", "arms", index, "share"
                )
            if arm.local and preprocesses != (arm.local.workers is not None):
                fields = "`workers`" if preprocesses else "`ranks` or `slow`"
                raise FieldError(f"{self.kind} needs {fields} here.", "arms", index, "local")
        return self

    @model_validator(mode="after")
    def _of_words_or_of_texts(self) -> Self:
        words = self.kind == "words"
        if self.text is not None and not words:
            raise FieldError("goes with `kind: words`; leave it out.", "text")
        if self.target is not None and self.target.measure and (self.target.measure in WORD_MEASURES) != words:
            known = ", ".join(WORD_MEASURES if words else _OF_CLASSIFIERS)
            raise FieldError(
                f"'{self.target.measure}' is no measure of such trainings; take one of {known}.", "target", "measure"
            )
        return self

    def settings_of(self, arm: Arm) -> dict[str, Any]:
        """The options of an arm's trainings: the shared ones, and its own in their place."""
        return {**self.settings, **arm.settings}
