"""Reads and writes experiment.json: the experiment as it is run, stored in the folder of its runs from the start.

A later command can continue the experiment. Never let it mix runs of one arm that have different settings, or runs on
different data, machines or deployments.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from common.errors import ExperimentError, explain_os_error
from common.files import DOCUMENT_BYTES, read_regular, write_whole
from experiments.plans.parts import Experiment, run_folder

NAME = "experiment.json"
PREPROCESSING = "preprocessing.json"
"""Name of the file with the measurements of a preprocessing run, in the folder of this run."""


class StoredExperiment(BaseModel):
    """Content of experiment.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    name: str
    experiment: Experiment
    cores: int | None = Field(default=None, ge=1)
    """Number of cores of this machine, or None if the runs are on deployments."""
    deployments: dict[str, str] = {}
    """Name of the deployment for each arm, by the arm's name."""
    data: str | None = None
    """Fingerprint of the data: a dataset's digest, or a hash of the names, sizes and modification times of the input
    files. None if unknown."""

    @field_validator("experiment", mode="before")
    @classmethod
    def _without_empty_target(cls, content: Any) -> Any:
        """Drop an empty `target`, which earlier versions wrote."""
        if isinstance(content, dict) and content.get("target", ...) is None:
            return {name: value for name, value in content.items() if name != "target"}
        return content

    @property
    def is_local(self) -> bool:
        return self.cores is not None


def read_stored(output: Path) -> StoredExperiment | None:
    """Return the experiment that is stored in a folder, or None if the folder has no experiment. Raises ExperimentError
    for an invalid file."""
    try:
        content = read_regular(output / NAME, DOCUMENT_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ExperimentError(f"cannot read {output / NAME}: {error.strerror}; choose a different --output") from error
    try:
        return StoredExperiment.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        raise ExperimentError(
            f"{output / NAME} is not an experiment file of this version of Shoal ({where}: {first['msg']}); run the "
            "experiment with a different --output"
        ) from None


def write_stored(output: Path, kept: StoredExperiment) -> None:
    """Write experiment.json atomically. Raises ExperimentError if writing fails."""
    with explain_os_error(ExperimentError, f"cannot write to {output}", "choose another --output"):
        output.mkdir(parents=True, exist_ok=True)
        write_whole(output / NAME, orjson.dumps(kept.model_dump(mode="json"), option=orjson.OPT_INDENT_2))


def require_same(before: StoredExperiment, now: StoredExperiment, output: Path) -> None:
    """Raise ExperimentError if the new runs differ from the existing runs in `output` in their experiment, place, data,
    or the settings of an arm."""
    otherwise = "choose a different --output, or remove this folder"
    if before.name != now.name or before.experiment.kind != now.experiment.kind:
        raise ExperimentError(
            f"{output} contains runs of the experiment '{before.name}', not of '{now.name}'; {otherwise}"
        )
    if before.is_local != now.is_local:
        place = "this machine" if before.is_local else "deployments"
        raise ExperimentError(f"{output} contains runs on {place}; {otherwise}")
    if None not in (before.data, now.data) and before.data != now.data:
        raise ExperimentError(f"{output} contains runs on different data; {otherwise}")
    earlier = {arm.name: arm for arm in before.experiment.arms}
    repeats = range(1, 1 + max(before.experiment.repeats, now.experiment.repeats))
    for arm in now.experiment.arms:
        was = earlier.get(arm.name)
        if was is None or not any(run_folder(output, arm, repeat).exists() for repeat in repeats):
            continue
        settings = [
            (each.settings_of(own), each.text, own.local, own.topology, own.share)
            for each, own in ((before.experiment, was), (now.experiment, arm))
        ]
        if settings[0] != settings[1]:
            raise ExperimentError(
                f"{output / arm.folder} contains runs of '{arm.name}' with settings that are no longer in the file; "
                f"{otherwise}"
            )


def with_earlier_deployments(
    before: StoredExperiment | None, now: StoredExperiment, names: Sequence[str]
) -> StoredExperiment:
    """Return `now`, but keep the deployments from `before` for all arms that are not in `names`."""
    if before is None:
        return now
    others = {name: where for name, where in before.deployments.items() if name not in names}
    return now.model_copy(update={"deployments": {**others, **now.deployments}, "data": now.data or before.data})
