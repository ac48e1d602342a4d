"""The configuration of a training run, put together from the sections of its options.

Importing this module does not import torch: the `shoal` command has the same options on machines that do not train. The
environment of a rank must be set before its process starts: whoever launches ranks applies `RANK_ENVIRONMENT`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.errors import TrainingError
from common.options import Option
from trainer.options.classifier_options import ClassifierOptions
from trainer.options.embedding_options import EmbeddingOptions
from trainer.options.optimisation_options import OptimisationOptions
from trainer.options.presets import (
    MODEL_DEFAULTS,
    OF_THE_RUN,
    ON_ENDLESS_TEXT,
    PRESETS,
    SEARCH_MINUTES,
    SEARCHED,
    SYSTEMS,
    WITH_EMBEDDINGS,
    WITHOUT_END,
)
from trainer.options.run_options import (
    BalanceOptions,
    ComputeOptions,
    DataOptions,
    DebuggingOptions,
    ModelOptions,
    OutputOptions,
)
from trainer.options.section import option, options, shown_options
from trainer.registry import AUTO, MODELS, Model, models_that

RANK_ENVIRONMENT: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": "2000000000",
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}
"""The malloc settings keep glibc from returning each step's memory to the system and asking for it again, which makes
CPU ranks up to twice as slow and their time no longer linear in rows. torch itself gets one thread, because a rank has
threads of its own (threads.py). No module is imported from the folder in which a rank is started, which may hold files
of anybody."""


NEEDS_GPU = "SHOAL_NEEDS_GPU"
"""An environment variable: where it is set, a rank that finds no GPU fails, and does not compute on the CPU."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig(
    DataOptions,
    OutputOptions,
    ModelOptions,
    ClassifierOptions,
    EmbeddingOptions,
    OptimisationOptions,
    BalanceOptions,
    ComputeOptions,
    DebuggingOptions,
):
    """All options of a training run, in the order in which help shows them."""

    fixed: tuple[str, ...] = option("", default=())
    """With `--model auto` the options of SEARCHED that were given, and so are the same in all trials; no option."""
    temperature: float | None = option("", default=None)
    """The mean temperature of the folds of the trial that a search has chosen; no option."""

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = MODELS[self.model]
        if self.char_ngrams and "char_ngrams" not in kind.settings:
            raise TrainingError(
                f"--char-ngrams is {self.char_ngrams}, but --model {self.model} has none; leave it out, or take "
                f"{_any_of(lambda model: 'char_ngrams' in model.settings)}"
            )
        if self.mode != "sync" and not kind.has_modes:
            raise TrainingError(
                f"--mode is {self.mode}, and --model {self.model} learns by --mode sync alone; leave it out, or take "
                f"{_any_of(lambda model: model.has_modes)}"
            )
        if self.local_steps and self.optimiser == "adam":
            raise TrainingError(
                f"--mode is {self.mode}, in which ranks cannot bring their moments of adam together; take --optimiser "
                "adagrad or sgd, or --mode sync"
            )
        if self.minutes is not None and not (kind.learns == "words" or self.model == AUTO):
            raise TrainingError(
                f"--minutes is the time of a search, and --model {self.model} needs none; leave it out, or take "
                f"--model {AUTO}"
            )
        if self.embeddings is not None and self.model == AUTO:
            raise TrainingError(
                f"--embeddings is what one model starts from, and --model {AUTO} tries several; take --model lstm"
            )
        if self.embeddings is not None and "embedding" not in kind.settings:
            advice = ", or take --model lstm" if kind.learns == "classes" else ""
            raise TrainingError(
                f"--embeddings is what a model of texts with word vectors starts from, and --model {self.model} is "
                f"none; leave it out{advice}"
            )
        if kind.chooses_ngrams and self.optimiser != "adagrad":
            raise TrainingError(
                f"--optimiser is {self.optimiser}, but --model {self.model} learns by adagrad alone, with a rate for "
                "each n-gram; leave it out"
            )

    @property
    def search_seconds(self) -> float:
        """What the search of `--model auto` may take, with the training after it."""
        return 60 * (SEARCH_MINUTES if self.minutes is None else self.minutes)

    @property
    def batch_follows_texts(self) -> bool:
        """Whether the rows of a global batch follow from the length of the texts (`sgd_batch`)."""
        return MODELS[self.model].rows_follow_texts and self.optimiser == "sgd" and not self.requested_batch(1)


_OF_THE_SEARCH: Mapping[str, Any] = {"group": ModelOptions.title, "advanced": False}
"""How `--minutes` is shown where it is about a search, and not about a stream."""
_SECTIONS = {"classes": ClassifierOptions, "words": EmbeddingOptions}
_SHARED = {"classes": (), "words": ("embedding", "hidden", "layers")}
"""Options of classifiers that models of words have, too."""


def options_for(learns: str, *, auto: bool = False) -> list[Option]:
    """The options of a run that learns `classes` or `words` (registry.py), or searches for a classifier (`auto`)."""
    others = {each.name for kind, section in _SECTIONS.items() if kind != learns for each in options(section)}
    others -= {*_SHARED[learns], *(("minutes",) if auto else ())}
    models = tuple(name for name, model in MODELS.items() if model.learns == learns and (auto or name != AUTO))
    presets = tuple(name for name, values in PRESETS.items() if values["model"] in models)
    defaults = {**MODEL_DEFAULTS.get(models[0], {}), "model": models[0]}
    choices = {"model": models, "preset": presets}
    systems = "; ".join(f"{name}, {SYSTEMS[name]}" for name in presets)
    texts = {
        "model": _described(models),
        "preset": f"start from settings under one name: {systems}; options that are given take precedence",
    }
    if auto:
        texts["minutes"] = (
            f"with --model {AUTO}: what the search may take, and about the training of its best settings after it; one "
            f"trial is always made (default: {SEARCH_MINUTES:g})"
        )
    return [
        replace(
            each,
            default=defaults.get(each.name, each.default),
            choices=choices.get(each.name, each.choices),
            text=texts.get(each.name, each.text),
            **(_OF_THE_SEARCH if auto and each.name == "minutes" else {}),
        )
        for each in options(TrainConfig)
        if each.name not in others and (learns == "words" or each.name != "mode")
    ]


def _described(models: Sequence[str]) -> str:
    """What `--model` chooses from, and the defaults of all models but the first, whose defaults the options show."""
    kinds = "; ".join(f"{name}, {MODELS[name].about}" for name in models)
    own = {name: MODEL_DEFAULTS.get(name) for name in models[1:]}
    others = "; ".join(f"of {name}: {shown_options(values)}" for name, values in own.items() if values)
    return f"the kind of model: {kinds}" + (f". Other defaults {others}" if others else "")


def _any_of(holds: Callable[[Model], object]) -> str:
    return f"--model {' or '.join(models_that(holds))}"


def default_model(given: Mapping[str, Any]) -> dict[str, str]:
    """What a person who has `given` these options trains: a model that is searched for, unless they name one,
    themselves or by a preset."""
    return {} if {"model", "preset"} & given.keys() else {"model": AUTO}


def configured(given: Mapping[str, Any], *, endless: bool = False) -> TrainConfig:
    """The configuration for the options that were `given`, by name, including a preset. `endless`: whether it is of a
    run on an unbounded stream.

    Raises TrainingError for invalid values.
    """
    values = dict(given)
    for one, other in (("global_batch", "rank_batch"), ("rank_batch", "global_batch")):
        if one in values:
            values.setdefault(other, None)
    preset = values.pop("preset", None)
    model: str = {**PRESETS.get(preset, {}), **values}.get("model", TrainConfig.model)
    if model == AUTO:
        if preset is not None:
            raise TrainingError(f"--preset {preset} has a model of its own; leave out --model {AUTO}, or --preset")
        values["fixed"] = tuple(name for name in SEARCHED if name in given)
    of_the_preset = values.keys().isdisjoint(OF_THE_RUN)
    values = {**PRESETS.get(preset, {}), **values}
    defaults = MODEL_DEFAULTS.get(model, {})
    if values.get("embeddings") is not None:
        defaults = {**defaults, **WITH_EMBEDDINGS.get(model, {})}
        values["embedding"] = given.get("embedding")  # None: that of the vectors, known when they are read
    if endless:
        ends = values.get("words") or values.get("epochs")
        defaults = {**defaults, **ON_ENDLESS_TEXT.get(model, {}), **({} if ends else WITHOUT_END)}
    config = TrainConfig(**{**defaults, **values}, preset=preset)  # refuses an unknown preset or model
    if endless and not (config.words or config.epochs) and (config.schedule != "constant" or config.warm_up):
        raise TrainingError(
            f"--schedule is {config.schedule} and --warm-up {config.warm_up:g}, which are about the whole of a run, "
            "but an unbounded stream has no end; take --schedule constant and --warm-up 0, or give --words"
        )
    return config if of_the_preset else replace(config, preset=None)
