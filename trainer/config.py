"""Configuration of a training run: what every run has, the options of its model, and those of its optimisation.

This module does not import torch, because the `shoal` command needs the same options on machines that do not train. The
environment of a rank must be set before its process starts, so the launcher applies `RANK_ENVIRONMENT`.
"""

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Self

from common.checked_values import Must, one_of, within
from common.errors import TrainingError
from common.options import Option, flag
from trainer.options.optimisation_options import DEFAULT_EPOCHS, GLOBAL_BATCH, KEPT_ON_RESUME, OptimisationOptions
from trainer.options.section import NonNegative, Section, option, options
from trainer.registry import DEFAULT_MODEL, MODELS, PRESETS, Settings, Workload

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

_MOST_SLOWED = 1_000_000
_Slow = Mapping[
    Annotated[int, Must("a rank from 0", lambda rank: rank >= 0)],
    Annotated[float, Must(f"a factor from 1 to {_MOST_SLOWED:,}", lambda factor: 1 <= factor <= _MOST_SLOWED)],
]


def parse_slowdown(text: str) -> tuple[int, float]:
    """Parse RANK:FACTOR to the rank and the factor. Raises ArgumentTypeError if the text has a different form."""
    rank, _, factor = text.partition(":")
    try:
        return int(rank), float(factor)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not RANK:FACTOR, such as 1:2.0") from None


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Section):
    """Configuration of a training run, in the order in which the help shows its options."""

    data: Path = option("dataset: an HDF5 file that `shoal preprocess` wrote", group="data", metavar="FILE")
    cache: Path | None = option(
        "folder for data that later runs reuse: datasets of raw texts, and unpacked rows (default: a private folder "
        "below the system's folder for temporary files)",
        group="data",
        default=None,
        metavar="DIR",
    )
    output: Path = option(
        "folder for the model (model/), record.jsonl, summary.json and checkpoints",
        group="output",
        metavar="DIR",
        advanced=False,
    )
    checkpoint_minutes: NonNegative = option(
        "minutes between two checkpoints; 0: an interval of 15 seconds to 5 minutes, so that writing checkpoints "
        "takes about a hundredth of the time",
        group="output",
        default=0.0,
    )
    resume: bool = option(
        "continue from the latest checkpoint in --output, if there is one, with any number of ranks",
        group="output",
        default=False,
        advanced=False,
    )
    force: bool = option(
        "train again although --output contains a finished model; the model is replaced at the end",
        group="output",
        default=False,
        advanced=False,
    )
    preset: Annotated[str, one_of(PRESETS)] | None = option(
        "start from the settings of another system", group="task", default=None
    )
    model: Annotated[str, one_of(MODELS)] = option("kind of model", group="task", advanced=False)
    seed: Annotated[int, within(0, 10**12)] = option(
        "seed of the initial weights, the order of rows, and dropout", group="task", default=0
    )
    options: Any = option("")
    """Section with the options of the model, of the class that registry.py declares."""
    optimisation: OptimisationOptions = option("")
    balance: str = option(
        "how to split each step's rows over ranks. steps: in proportion to their speeds, measured during the run; "
        "epoch:X: in proportion to their speeds over the last X epochs, like the reference system; off: equally; "
        "3,1,1: in fixed shares, one for each rank",
        group="balance",
        default="steps",
        metavar="HOW",
    )
    precision: Annotated[str, one_of(("auto", "float32", "bfloat16", "float16"))] = option(
        "precision of the layers; bfloat16 and float16 need GPUs. auto: bfloat16 or float16 if it is fast on all "
        "GPUs, else float32",
        group="compute",
        default="auto",
        internal=True,
    )
    threads: Annotated[int, within(1, 1024)] | None = option(
        "CPU threads of a rank (default: the machine's cores, shared among its ranks)",
        group="compute",
        default=None,
    )
    slow: _Slow = option(
        "slow down a rank by FACTOR with a sleep, to test the balancer on equal hardware",
        group="debugging",
        factory=dict,
        metavar="RANK:FACTOR",
        kind=parse_slowdown,
        several=True,
    )
    fixed: tuple[str, ...] = option("", default=())
    """Internal. Options of KEPT_ON_RESUME that the user gave although the model or preset implies them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        from shoal_balance import parse_balance  # imports numpy, which `--help` does not need

        try:
            parse_balance(self.balance)
        except ValueError as error:
            raise TrainingError(f"--balance is {self.balance}, but {error}") from error
        only = MODELS[self.model].optimisers
        if only and self.optimisation.optimiser not in only:
            raise TrainingError(
                f"--optimiser is {self.optimisation.optimiser}, but --model {self.model} supports only "
                f"{' or '.join(only)}; leave out --optimiser"
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the configuration for values of its fields and of the fields of its sections, keyed by name.

        Raises TrainingError for invalid values.
        """
        left = dict(values)
        parts: dict[str, Any] = {
            field: kind(**{each.name: left.pop(each.name) for each in fields(kind) if each.name in left})
            for field, kind in sections_of(left["model"]).items()
        }
        return cls(**left, **parts)

    def changed(self, **values: Any) -> Self:
        """Return this configuration with other values, also of the fields of its sections."""
        return self.of({**self.values(), **values})

    def with_step_rows(self, size: Workload) -> Self:
        """Return this configuration with the model's default batch size, unless the user gave a batch size."""
        declared = MODELS[self.model].step_rows
        step_rows = declared and declared.of(size._replace(optimiser=self.optimisation.optimiser))
        return self if self.optimisation.requested_batch(1) or not step_rows else self.changed(global_batch=step_rows)


def sections_of(model: str) -> dict[str, type[Any]]:
    """Return the classes of the fields of TrainConfig that are sections. Raises TrainingError for an unknown model."""
    if model not in MODELS:
        raise TrainingError(f"--model is {model}, but must be one of {', '.join(MODELS)}")
    declared = MODELS[model]
    return {"options": resolve_name(declared.options), "optimisation": resolve_name(declared.optimisation)}


def setting_names() -> set[str]:
    """Return the names of the settings of all models."""
    kinds: list[Any] = [TrainConfig, *(kind for model in MODELS for kind in sections_of(model).values())]
    return {entry.name for kind in kinds for entry in fields(kind)}


@cache
def options_of_model(model: str) -> Mapping[str, Option]:
    """Return the options of a run that trains this model, by name. Raises TrainingError for an unknown model."""
    return {each.name: each for each in options(TrainConfig, **sections_of(model))}


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
    kept = "with --resume: unchanged"
    changed: dict[str, dict[str, Any]] = {
        "model": {"required": False, "default": models[0], "choices": models, "text": _model_help(models)},
        "preset": {
            "choices": tuple(presets),
            "text": f"start from the settings of another system: {systems}. Options that are given take precedence",
        },
        "epochs": {
            "default": None,
            "text": f"passes over the training rows (default: {epochs}{DEFAULT_EPOCHS}; {kept})",
        },
        "global_batch": {
            "text": f"rows per step, over all ranks together (default: {step_rows}; otherwise {GLOBAL_BATCH}; {kept})"
        },
    }
    adapted = []
    for name, declared in _declared(models).items():
        first, each = next(iter(declared.items()))
        text = each.text if len(declared) == len(models) else f"{', '.join(declared)}: {each.text}"
        default = MODELS[first].defaults.get(name, each.default)
        adapted.append(replace(each, **{"default": default, "text": text, **changed.get(name, {})}))
    return adapted


def _declared(models: Sequence[str]) -> dict[str, dict[str, Option]]:
    """Return the options of these models by name, each as declared by the models that have it.

    An option that only later models have follows the option of its group that it follows in its model.
    """
    names: list[str] = []
    for model in models:
        before, latest = "", dict[str, str]()
        for name, each in options_of_model(model).items():
            if name not in names:
                names.insert(names.index(latest.get(each.group, before)) + 1 if before else 0, name)
            before = latest[each.group] = name
    by_model = {model: options_of_model(model) for model in models}
    return {name: {model: own[name] for model, own in by_model.items() if name in own} for name in names}


def _model_help(models: Sequence[str]) -> str:
    """Return the help of `--model`: the choices, and the defaults of each model that the help of no option shows.

    The help of an option shows the default of the first model that has it.
    """
    kinds = "; ".join(f"{name}, {MODELS[name].about}" for name in models)
    defaults: dict[str, list[str]] = {model: [] for model in models}
    for name, declared in _declared(models).items():
        of_models = {model: MODELS[model].defaults.get(name, each.default) for model, each in declared.items()}
        usual = next(iter(of_models.values()))
        for model, default in of_models.items():
            if default not in (usual, None) and name != "epochs" and not declared[model].internal:
                defaults[model].append(f"{flag(name)} {default}")
    others = "; ".join(f"for {name}: {' '.join(own)}" for name, own in defaults.items() if own)
    return f"kind of model: {kinds}" + (f". Other defaults {others}" if others else "")


def configured(given: Mapping[str, Any], *, endless: bool = False) -> TrainConfig:
    """Return the configuration for the options that the user gave, keyed by option name. A preset is applied.

    In `given`, a list may stand for a tuple, and a path for its text or a text for its path. `endless`: the run trains
    on an unbounded stream. Raises TrainingError for invalid values.
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
    for name, value in given.items():
        if name in options_of_model(model):
            values[name] = _as_declared(value, options_of_model(model)[name])
        elif having := [of for of in MODELS if name in options_of_model(of)]:
            same_kind = [of for of in having if MODELS[of].learns == MODELS[model].learns]
            advice = f", or use --model {' or '.join(same_kind)}" if same_kind else ""
            raise TrainingError(f"--model {model} has no {flag(name)}; leave it out{advice}")
    declared, implied = MODELS[model], implied_settings(model, preset)
    values["fixed"] = tuple(name for name in KEPT_ON_RESUME if name in given and name in implied)
    defaults = dict(declared.defaults)
    if values.get("embeddings") is not None:
        defaults |= declared.with_embeddings
        # None: the dimensions of the vectors, which are unknown until the vectors are read.
        values["embedding"] = given.get("embedding")
    if endless:
        ends = values.get("words") or values.get("epochs")
        defaults |= {**declared.on_endless_text, **({} if ends else _ENDLESS_DEFAULTS)}
    values = {**defaults, **values}
    config = TrainConfig.of({**values, "preset": preset})  # raises TrainingError if the preset is unknown
    rule = config.optimisation
    if endless and not (values.get("words") or rule.epochs) and (rule.schedule != "constant" or rule.warm_up):
        raise TrainingError(
            f"--schedule is {rule.schedule} and --warm-up {rule.warm_up:g}, which need the length of the run, "
            "but an unbounded stream has no end; use --schedule constant and --warm-up 0, or give --words"
        )
    return config


def _as_declared(value: Any, option: Option) -> Any:
    """Convert a list to the tuple that an option needs, and a path to a string or a string to a path."""
    if option.several and isinstance(value, list):
        return tuple(map(str, value))
    return option.kind(value) if option.kind in (str, Path) and isinstance(value, str | Path) else value
