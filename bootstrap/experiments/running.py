"""All runs of an experiment, one after the other, in turns; runs that are finished stay as they are.

Write experiment.json before the first run: what reads the results must know what was meant, also of an experiment that
goes on or was stopped.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Protocol

from bootstrap.experiments.places import Where
from bootstrap.progress import Bars
from common.display import plural
from common.errors import DataError, ExperimentError, TrainingError
from experiments.plans.experiment_files import ExperimentFile
from experiments.plans.kept import Kept, joined, read_kept, require_same, write_kept
from experiments.plans.parts import Arm
from experiments.plans.planned import PlannedRun, chosen_arms, planned_runs
from experiments.plans.prices import RunPrice


class RunMaker(Protocol):
    """Makes the runs of an experiment of one kind: trainings, or preprocessings."""

    @property
    def where(self) -> Where: ...

    data: str | None
    """What stands for the data (experiments/plans/kept.py)."""

    def why_not(self, arm: Arm) -> str:
        """Why an arm cannot run there; empty where it can."""
        ...

    def price(self, run: PlannedRun) -> RunPrice:
        """What a run would take and cost."""
        ...

    def is_finished(self, run: PlannedRun) -> bool:
        """Whether a run has come to its end before. Raises ExperimentError where its folder holds another one."""
        ...

    def make(self, run: PlannedRun, bars: Bars) -> str | None:
        """Make a run, or go on with one that was stopped; returns the name of the signal that stopped it."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunningPlan:
    """The runs that a command is to make."""

    file: ExperimentFile
    maker: RunMaker
    output: Path
    arms: tuple[Arm, ...]
    left_out: tuple[tuple[Arm, str], ...]
    """Arms that cannot run here, each with the reason."""
    runs: tuple[PlannedRun, ...]
    """Of all arms that can, finished or not."""

    def unfinished(self) -> list[PlannedRun]:
        """The runs that are still to be made. Raises ExperimentError where a folder holds other runs."""
        return [run for run in self.runs if not self.maker.is_finished(run)]

    def prices(self) -> list[tuple[PlannedRun, RunPrice]]:
        """What the runs that are still to be made would take and cost."""
        return [(run, self.maker.price(run)) for run in self.unfinished()]


def plan_runs(file: ExperimentFile, maker: RunMaker, *, output: Path, names: Sequence[str]) -> RunningPlan:
    """The runs of the arms of these names (none: all) that this makes.

    Raises ExperimentError where no arm can run there, and for an output that holds other runs.
    """
    chosen = chosen_arms(file.experiment, names)
    left_out = tuple((arm, why) for arm in chosen if (why := maker.why_not(arm)))
    arms = tuple(arm for arm in chosen if not maker.why_not(arm))
    if not arms:
        first, why = left_out[0]
        raise ExperimentError(f"no arm of '{file.name}' can run there: '{first.name}', because {why}")
    before = read_kept(output)
    runs = tuple(planned_runs(arms, file.experiment.repeats, output))
    if before is not None:
        require_same(before, _kept(file, maker, arms), output)
    elif foreign := next((run.folder for run in runs if run.folder.exists()), None):
        raise ExperimentError(f"{foreign} is there, and is not of this experiment; choose another --output")
    return RunningPlan(file=file, maker=maker, output=output, arms=arms, left_out=left_out, runs=runs)


def run_experiment(plan: RunningPlan, bars: Bars) -> str | None:
    """Make all runs that are not finished; returns the name of the signal that stopped one with a checkpoint.

    Raises ExperimentError, with the run, for one that fails; the same command then begins with it.
    """
    names = [arm.name for arm in plan.arms]
    write_kept(plan.output, joined(read_kept(plan.output), _kept(plan.file, plan.maker, plan.arms), names))
    for arm, why in plan.left_out:
        bars.note(f"left out: '{arm.name}', because {why}")
    cores = plan.maker.where.cores
    for arm in plan.arms if cores else ():
        if arm.local and cores and (arm.local.ranks or len(arm.local.slow)) > cores:
            bars.note(
                f"'{arm.name}' has {plural(arm.local.world_size, 'rank')} on {plural(cores, 'core')}, so it "
                "is left out of efficiency"
            )
    left = plan.unfinished()
    if done := len(plan.runs) - len(left):
        bars.note(f"{plural(done, 'run')} of {len(plan.runs)} finished before")
    took: dict[str, list[float]] = {}
    for number, run in enumerate(left, done + 1):
        bars.note(
            f"run {number} of {len(plan.runs)}: {run.arm.name}, repeat {run.repeat}"
            f"{_time_left(left[number - done - 1 :], took, plan.maker)}"
        )
        begin = time.monotonic()
        try:
            stopped_by = plan.maker.make(run, bars)
        except (TrainingError, DataError) as error:
            raise ExperimentError(f"'{run.arm.name}', repeat {run.repeat}: {error}") from error
        if stopped_by:
            return stopped_by
        took.setdefault(run.arm.name, []).append(time.monotonic() - begin)
    return None


def _kept(file: ExperimentFile, maker: RunMaker, arms: Sequence[Arm]) -> Kept:
    deployments = {arm.name: name for arm in arms if (name := maker.where.deployment_of(arm))}
    return Kept(
        name=file.name, experiment=file.experiment, cores=maker.where.cores, deployments=deployments, data=maker.data
    )


def _time_left(runs: Sequence[PlannedRun], took: dict[str, list[float]], maker: RunMaker) -> str:
    """About how long these runs take, by those before them, or as predicted; empty where nothing is known."""
    known = [_expected(run, took, maker) for run in runs]
    told = [seconds for seconds in known if seconds is not None]
    if not told:
        return ""
    seconds = sum(told) + (len(known) - len(told)) * mean(told)
    return f"; about {max(1, round(seconds / 60))} min left"


def _expected(run: PlannedRun, took: dict[str, list[float]], maker: RunMaker) -> float | None:
    """Seconds of a run, by those of its arm, or as predicted; None where neither is known."""
    if run.arm.name in took:
        return mean(took[run.arm.name])
    predicted = maker.price(run).seconds
    return predicted.middle if predicted else None
