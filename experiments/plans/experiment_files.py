"""Reads and checks an experiment's file: one of those that Shoal has, by its name, or any other by its path."""

import difflib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from common.errors import ExperimentError
from experiments.plans.arm_settings import SettingError, config_of, require_kind
from experiments.plans.parts import Experiment
from experiments.plans.planned import planned_runs
from infra import document
from infra.document import Document, Location
from infra.topology import is_file, name_of
from infra.topology_error import TopologyError

FOLDER = Path(__file__).parents[1]
"""The folder of the files that Shoal has."""

_DATA, _OUTPUT = Path("dataset"), Path("output")
"""In the place of those that a command gives."""


@dataclass(frozen=True, kw_only=True)
class ExperimentFile:
    name: str
    """That of its file."""
    experiment: Experiment


def names() -> list[str]:
    """The experiments that Shoal has, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(given: str) -> ExperimentFile:
    """Read an experiment: one of Shoal's by its name, or any file by its path, which ends in .yaml or .yml.

    Raises ExperimentError with one sentence that contains file, line and field.
    """
    path = Path(given) if is_file(given) else FOLDER / f"{given}.yaml"
    if not is_file(given) and given not in names():
        nearest = difflib.get_close_matches(given, names(), n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are: {', '.join(names())}."
        raise ExperimentError(f"There is no experiment '{given}'; {hint} Your own are given by their file.")
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
    """Raise TopologyError, with the line, for settings that no training takes: an arm's own, or else shared ones."""
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
