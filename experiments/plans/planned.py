"""The runs of an experiment, in the order in which they are made.

All arms take turns: the first run of each, then the second of each. So what changes on a machine meanwhile (its
clock, other programs) changes all arms alike, and after each round there is a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import ExperimentError
from experiments.plans.parts import Arm, Experiment


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    arm: Arm
    repeat: int
    """From 1."""
    folder: Path
    """Of its results."""


def planned_runs(arms: Sequence[Arm], repeats: int, output: Path) -> list[PlannedRun]:
    """All runs, in their order."""
    return [
        PlannedRun(arm=arm, repeat=repeat, folder=run_folder(output, arm, repeat))
        for repeat in range(1, repeats + 1)
        for arm in arms
    ]


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
