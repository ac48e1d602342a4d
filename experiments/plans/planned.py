"""The runs of an experiment, in the order in which they are made.

All arms take turns: the first run of each, then the second of each. So what changes on a machine meanwhile (its
clock, other programs) changes all arms alike, and after each round there is a result.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import ExperimentError
from experiments.plans.parts import Arm, Experiment

_PRETRAININGS = ".pretraining"
"""The folder of language models, in the output: an arm's folder has no such name."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run of an arm."""

    arm: Arm
    repeat: int
    """From 1."""
    folder: Path
    """Of its results."""
    pretrains: bool = False
    """Whether it is the pretraining of the arm's language model, which other arms and repeats may share."""

    @property
    def called(self) -> str:
        """What it is called for a person."""
        return f"pretraining for {self.arm.name}" if self.pretrains else self.arm.name


def planned_runs(arms: Sequence[Arm], repeats: int, output: Path) -> list[PlannedRun]:
    """All runs, in their order."""
    return [
        PlannedRun(arm=arm, repeat=repeat, folder=run_folder(output, arm, repeat))
        for repeat in range(1, repeats + 1)
        for arm in arms
    ]


def pretraining_runs(experiment: Experiment, arms: Sequence[Arm], output: Path) -> list[PlannedRun]:
    """The pretrainings of the language models of these arms: one for all arms with the same settings."""
    found: dict[Path, PlannedRun] = {}
    for arm in arms:
        folder = pretraining_folder(experiment, arm, output)
        if folder is not None and folder not in found:
            found[folder] = PlannedRun(arm=arm, repeat=1, folder=folder, pretrains=True)
    return list(found.values())


def pretraining_folder(experiment: Experiment, arm: Arm, output: Path) -> Path | None:
    """The folder of the language model of an arm, named by its settings; None where it starts from none."""
    settings = experiment.pretraining_of(arm)
    if settings is None:
        return None
    words = [f"{name}-{settings[name]}" for name in sorted(settings)]
    return output / _PRETRAININGS / (re.sub(r"[^a-z0-9.]+", "-", "-".join(words).lower()) or "default")


def run_folder(output: Path, arm: Arm, repeat: int) -> Path:
    """The folder of a run; `repeat` is from 1."""
    return output / arm.folder / str(repeat)


def chosen_arms(experiment: Experiment, names: Sequence[str]) -> list[Arm]:
    """The arms of these names, or all where there are none. Raises ExperimentError for a name that no arm has."""
    known = {arm.name: arm for arm in experiment.arms}
    for name in names:
        if name not in known:
            raise ExperimentError(f"--arms names '{name}'; the experiment has {', '.join(map(repr, known))}")
    return [arm for arm in experiment.arms if not names or arm.name in names]
