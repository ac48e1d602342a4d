"""Reads experiment files: an experiment that Shoal ships, by its name, or any file, by its path.

The trainer's own rules validate the settings. Do not rely on the YAML type of a setting, because YAML reads 8e-3 as a
string.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from common.errors import ExperimentError, TrainingError
from common.options import Option, flag
from experiments.plans.parts import Experiment, PlannedRun, planned_runs
from infra import document
from infra.document import Document, Location
from infra.topology import is_file, name_of
from infra.topology_error import TopologyError
from trainer.config import TrainConfig, configured
from trainer.options.section import options
from trainer.registry import WORD_MODELS

FOLDER = Path(__file__).parents[1]
"""Folder of the experiment files that Shoal ships."""

_RESERVED: Mapping[str, str] = {
    **{name: f"leave out {name}, because the command sets it." for name in ("data", "output", "resume", "force")},
    "seed": "leave out seed, because each repeat has a different seed.",
    "slow": "write slow below the arm's `local`, such as `{slow: [1, 2]}`.",
}
_OPTIONS: Mapping[str, Option] = {each.name: each for each in options(TrainConfig)}
_DATA, _OUTPUT = Path("dataset"), Path("output")
"""Placeholders for the paths of data and output, which the command sets."""


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    name: str
    """File name without its extension."""
    experiment: Experiment


def names() -> list[str]:
    """Return the names of the experiments that Shoal ships, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(given: str) -> ExperimentFile:
    """Read an experiment. `given` is the name of an experiment that Shoal ships, or a path that ends in .yaml or .yml.

    Raises ExperimentError, which names the file, line and field.
    """
    path = Path(given) if is_file(given) else FOLDER / f"{given}.yaml"
    if not is_file(given) and given not in names():
        nearest = difflib.get_close_matches(given, names(), n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"Shoal has: {', '.join(names())}."
        raise ExperimentError(
            f"There is no experiment '{given}'; {hint} To run your own experiment, give the path of its file."
        )
    if not path.exists():
        raise ExperimentError(f"There is no file {given}; check the path.")
    try:
        source = document.read(path, str(path) if is_file(given) else f"{given}.yaml", "an experiment")
        try:
            found = Experiment.model_validate(source.data)
        except ValidationError as error:
            raise source.invalid(Experiment, error) from None
        _check_settings(source, found)
    except TopologyError as error:
        raise ExperimentError(str(error)) from None
    return ExperimentFile(name=name_of(given), experiment=found)


def _check_settings(source: Document, found: Experiment) -> None:
    """Raise TopologyError, with the line, for an invalid setting in an arm's settings or in the shared settings."""
    for index, arm in enumerate(found.arms) if found.kind != "preprocessing" else ():
        (run,) = planned_runs([arm], 1, _OUTPUT)
        try:
            require_kind(found, config_of(found, run, data=_DATA, local=True))
        except SettingError as error:
            shared = error.name is not None and error.name not in arm.settings
            where: Location = ("settings",) if shared else ("arms", index, "settings")
            words = "settings" if shared else f"arms {index + 1}, settings"
            location = where if error.name is None else (*where, error.name)
            raise source.fault(location, f"{words}: {error}", at_key=True) from None


class SettingError(ValueError):
    """Invalid setting. `name=None` means that a combination of settings is invalid."""

    def __init__(self, name: str | None, sentence: str) -> None:
        super().__init__(sentence)
        self.name = name


def config_of(
    experiment: Experiment,
    run: PlannedRun,
    *,
    data: Path,
    local: bool,
    resume: bool = False,
) -> TrainConfig:
    """Return the training configuration of one run of an experiment.

    Raises SettingError for a setting that is not an option of `shoal train`, has an invalid value, or conflicts with
    the arm's `local`.
    """
    given = {name: _value(name, value) for name, value in experiment.settings_of(run.arm).items()}
    try:
        made = configured({**given, "data": data, "output": run.folder})
    except TrainingError as error:
        named = [name for name in given if str(error).startswith(f"{flag(name)} ")]
        raise SettingError(named[0] if named else None, f"{error}.") from None
    here = run.arm.local if local else None
    slow = {rank: factor for rank, factor in enumerate(here.slow) if factor > 1} if here else {}
    try:
        return replace(made, seed=run.repeat, resume=resume, slow=slow)
    except TrainingError as error:
        raise SettingError(None, f"{error}.") from None


def require_kind(experiment: Experiment, config: TrainConfig) -> None:
    """Raise SettingError if the configured model does not belong to the experiment's kind."""
    if experiment.kind == "words" and config.model not in WORD_MODELS:
        raise SettingError(
            "model",
            f"{config.model} does not learn word embeddings; use {' or '.join(WORD_MODELS)}, or `kind: training`.",
        )
    if experiment.kind == "training" and config.model in WORD_MODELS:
        raise SettingError("model", f"{config.model} learns word embeddings; write `kind: words`.")


def _value(name: str, value: Any) -> Any:
    if name in _RESERVED:
        raise SettingError(name, _RESERVED[name])
    if name not in _OPTIONS:
        nearest = difflib.get_close_matches(name.replace("-", "_"), _OPTIONS, n=1, cutoff=0.5)
        hint = (
            f"did you mean '{nearest[0]}'?"
            if nearest
            else "`shoal train --help-all` lists the options; write them with underscores."
        )
        raise SettingError(name, f"'{name}' is not an option of `shoal train`; {hint}")
    kind = _OPTIONS[name].kind
    if (kind is bool) != isinstance(value, bool) or not isinstance(value, str | int | float):
        need = "true or false" if kind is bool else "a single value (in quotes if it is a word such as off)"
        raise SettingError(name, f"{name} is {value!r}, but must be {need}.")
    try:
        return value if kind is bool else kind(str(value))
    except ValueError:
        need = "a whole number" if kind is int else "a number"
        raise SettingError(name, f"{name} is {value!r}, but must be {need}.") from None
