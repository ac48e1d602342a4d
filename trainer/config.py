"""Configuration of a training run, composed of the option sections.

This module does not import torch, because the `shoal` command needs the same options on machines that do not train. The
environment of a rank must be set before its process starts, so the launcher applies `RANK_ENVIRONMENT`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from common.errors import TrainingError
from common.options import Option, flag
from corpus.dataset_settings import FIXED
from trainer.options.classifier_options import ClassifierOptions
from trainer.options.embedding_options import EmbeddingOptions
from trainer.options.optimisation_options import DEFAULT_EPOCHS, GLOBAL_BATCH, KEPT_ON_RESUME, OptimisationOptions
from trainer.options.run_options import (
    BalanceOptions,
    ComputeOptions,
    DataOptions,
    DebuggingOptions,
    ModelOptions,
    OutputOptions,
)
from trainer.options.section import option, options
from trainer.registry import DEFAULT_MODEL, MODELS, PRESETS, RunSize, Settings

_ENDLESS_DEFAULTS: Settings = {"schedule": "constant"}
"""Defaults on an unbounded stream without an end: the rate cannot decay over an unknown number of steps."""

RANK_ENVIRONMENT: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": "2000000000",
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "OMP_NUM_THREADS": "1",
    "PYTHONSAFEPATH": "1",
}
"""Environment variables of a rank.

The malloc settings make glibc keep the memory of each step instead of returning it to the system. Without these
settings, ranks on CPUs are up to twice as slow, and their time per step is no longer linear in the number of rows.
PyTorch uses one thread, because a rank has its own threads (threads.py). `PYTHONSAFEPATH` prevents imports from the
working directory, which can contain untrusted files.
"""


NEEDS_GPU = "SHOAL_NEEDS_GPU"
"""Name of an environment variable. If it is set, a rank without a GPU fails instead of computing on the CPU."""


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
    """All options of a training run, in the order in which the help shows them."""

    fixed: tuple[str, ...] = option("", default=())
    """Internal. Options of KEPT_ON_RESUME that the user gave although the model or preset implies them."""
    row_length: int = option("", default=FIXED.row_length)
    """Internal. Largest number of words per row in a padded batch. A preset can change it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        only = MODELS[self.model].optimisers
        if only and self.optimiser not in only:
            raise TrainingError(
                f"--optimiser is {self.optimiser}, but --model {self.model} supports only {' or '.join(only)}; "
                "leave out --optimiser"
            )
        if self.local_steps and self.optimiser == "adam":
            raise TrainingError(
                f"--mode is {self.mode}, which cannot average Adam's moments across ranks; use --optimiser adagrad "
                "or sgd, or --mode sync"
            )

    def with_step_rows(self, size: RunSize) -> "TrainConfig":
        """Return this configuration with the model's default batch size, unless the user gave a batch size."""
        declared = MODELS[self.model].step_rows
        step_rows = declared and declared.of(size._replace(optimiser=self.optimiser))
        return self if self.requested_batch(1) or not step_rows else replace(self, global_batch=step_rows)


@cache
def models_by_option() -> Mapping[str, tuple[str, ...]]:
    """Return the names of the models that have an option, for each option that not all models have."""
    kinds = {ClassifierOptions.title: "classes", EmbeddingOptions.title: "words"}
    models_of = {}
    for each in options(TrainConfig):
        named = tuple(of for of, model in MODELS.items() if each.name in (*model.settings, *model.options))
        learns = kinds.get(each.group)
        if models := named or tuple(of for of, model in MODELS.items() if learns == model.learns):
            models_of[each.name] = models
    return models_of


def _unsupported_option(model: str, name: str) -> TrainingError:
    """Return the error for an option that a model does not have. It names models of the same kind that have it."""
    having = [of for of in models_by_option()[name] if MODELS[of].learns == MODELS[model].learns]
    advice = f", or use --model {' or '.join(having)}" if having else ""
    return TrainingError(f"--model {model} has no {flag(name)}; leave it out{advice}")


def implied_settings(model: str, preset: str | None) -> Settings:
    """Return the settings that a model and a preset, if any, imply. Options that the user gives take precedence."""
    return {**MODELS[model].defaults, **PRESETS.get(preset or "", {})}


def options_for(learns: str) -> list[Option]:
    """Return the options with which `shoal` trains models that learn `classes` or `words` (registry.py)."""
    models = tuple(name for name, model in MODELS.items() if model.learns == learns)
    return [each for each in options_of(models) if not each.internal]


def options_of(models: Sequence[str]) -> list[Option]:
    """Return all options of a run that trains one of these models. The first model is the default."""
    presets = {name: each.system for model in models for name, each in MODELS[model].presets.items()}
    systems = "; ".join(f"{name}, {system}" for name, system in presets.items())
    step_rows = "; ".join(f"for {name} {rows.about}" for name in models if (rows := MODELS[name].step_rows))
    epochs = "".join(f"for {name} {own}; else " for name in models if (own := MODELS[name].defaults.get("epochs")))
    changed: dict[str, dict[str, Any]] = {
        "model": {"required": False, "default": models[0], "choices": models, "text": _model_help(models)},
        "preset": {
            "choices": tuple(presets),
            "text": f"start from the settings of another system: {systems}. Options that are given take precedence",
        },
        "epochs": {
            "default": None,
            "text": f"passes over the training rows (default: {epochs}{DEFAULT_EPOCHS}; with --resume: unchanged)",
        },
        "global_batch": {
            "text": f"rows per step, over all ranks together (default: {step_rows}; otherwise {GLOBAL_BATCH}; with "
            "--resume: unchanged)"
        },
    }
    adapted = []
    for each in options(TrainConfig):
        if having := [name for name in models if name in models_by_option().get(each.name, models)]:
            text = each.text if having == [*models] else f"{', '.join(having)}: {each.text}"
            default = MODELS[having[0]].defaults.get(each.name, each.default)
            adapted.append(replace(each, **{"default": default, "text": text, **changed.get(each.name, {})}))
    return adapted


def _model_help(models: Sequence[str]) -> str:
    """Return the help of `--model`: the choices, and the defaults of each model that the help of no option shows.

    The help of an option shows the default of the first model that has it.
    """
    kinds = "; ".join(f"{name}, {MODELS[name].about}" for name in models)
    defaults: dict[str, list[str]] = {model: [] for model in models}
    for each in options(TrainConfig):
        having = [name for name in models if name in models_by_option().get(each.name, models)]
        of_models = {name: MODELS[name].defaults.get(each.name, each.default) for name in having}
        for name, default in of_models.items():
            if default not in (of_models[having[0]], None) and each.name != "epochs" and not each.internal:
                defaults[name].append(f"{flag(each.name)} {default}")
    others = "; ".join(f"for {name}: {' '.join(own)}" for name, own in defaults.items() if own)
    return f"kind of model: {kinds}" + (f". Other defaults {others}" if others else "")


def configured(given: Mapping[str, Any], *, endless: bool = False) -> TrainConfig:
    """Return the configuration for the options that the user gave, keyed by option name. A preset is applied.

    `endless`: the run trains on an unbounded stream. Raises TrainingError for invalid values.
    """
    values = dict(given)
    for one, other in (("global_batch", "rank_batch"), ("rank_batch", "global_batch")):
        if one in values:
            values.setdefault(other, None)
    preset = values.pop("preset", None)
    of_preset = PRESETS.get(preset, {})
    values = {**of_preset, **values}
    model: str = values.setdefault("model", DEFAULT_MODEL)
    if of_preset and model != (own := of_preset["model"]):
        raise TrainingError(f"--preset {preset} requires --model {own}; leave out --model {model}, or --preset")
    declared = MODELS.get(model)
    if declared is not None:
        implied = implied_settings(model, preset)
        values["fixed"] = tuple(name for name in KEPT_ON_RESUME if name in given and name in implied)
        defaults = dict(declared.defaults)
        for name, models in models_by_option().items():
            if name in given and model not in models:
                raise _unsupported_option(model, name)
        if values.get("embeddings") is not None:
            defaults |= declared.with_embeddings
            # None: the dimensions of the vectors, which are unknown until the vectors are read.
            values["embedding"] = given.get("embedding")
        if endless:
            ends = values.get("words") or values.get("epochs")
            defaults |= {**declared.on_endless_text, **({} if ends else _ENDLESS_DEFAULTS)}
        values = {**defaults, **values}
    config = TrainConfig(**values, preset=preset)  # raises TrainingError if the preset or the model is unknown
    if endless and not (config.words or config.epochs) and (config.schedule != "constant" or config.warm_up):
        raise TrainingError(
            f"--schedule is {config.schedule} and --warm-up {config.warm_up:g}, which need the length of the run, "
            "but an unbounded stream has no end; use --schedule constant and --warm-up 0, or give --words"
        )
    return config
