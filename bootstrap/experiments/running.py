"""Executes the runs of an experiment one after the other, alternating between arms. Finished runs are not repeated.

experiment.json is written before the first run, because commands show the results of unfinished experiments, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bootstrap.experiments.preprocessings import Preprocessings
from bootstrap.experiments.trainings import Trainings
from bootstrap.progress import Bars
from common.display import plural
from common.errors import DataError, ExperimentError, TrainingError
from experiments.plans.experiment_files import ExperimentFile
from experiments.plans.parts import Arm, PlannedRun, planned_runs, select_arms
from experiments.plans.prices import RunPrice
from experiments.plans.stored import StoredExperiment, read_stored, require_same, with_earlier_deployments, write_stored

RunMaker = Trainings | Preprocessings


@dataclass(frozen=True, kw_only=True)
class RunningPlan:
    """Runs that a command will execute."""

    file: ExperimentFile
    maker: RunMaker
    output: Path
    arms: tuple[Arm, ...]
    left_out: tuple[tuple[Arm, str], ...]
    """Arms that cannot run at the chosen place, each with the reason."""
    runs: tuple[PlannedRun, ...]
    """Runs of all other arms, both finished and unfinished."""

    def unfinished(self) -> list[PlannedRun]:
        """Return the unfinished runs. Raises ExperimentError if a run's folder contains a run on different data."""
        return [run for run in self.runs if not self.maker.is_finished(run)]

    def prices(self) -> list[tuple[PlannedRun, RunPrice]]:
        """Return the unfinished runs with their expected time and cost."""
        return [(run, self.maker.price(run)) for run in self.unfinished()]


def plan_runs(file: ExperimentFile, maker: RunMaker, *, output: Path, names: Sequence[str]) -> RunningPlan:
    """Return the runs of the named arms (default: all) that `maker` can execute.

    Raises ExperimentError if `maker` can run no arm, or if the output folder contains runs of another experiment.
    """
    chosen = select_arms(file.experiment, names)
    left_out = tuple((arm, why) for arm in chosen if (why := maker.why_not(arm)))
    arms = tuple(arm for arm in chosen if not maker.why_not(arm))
    if not arms:
        first, why = left_out[0]
        raise ExperimentError(
            f"no arm of '{file.name}' can run at the chosen place; for example, '{first.name}' cannot, because {why}"
        )
    before = read_stored(output)
    runs = tuple(planned_runs(arms, file.experiment.repeats, output))
    if before is not None:
        require_same(before, _kept(file, maker, arms), output)
    elif foreign := next((run.folder for run in runs if run.folder.exists()), None):
        raise ExperimentError(f"{foreign} already exists and is not from this experiment; choose another --output")
    return RunningPlan(file=file, maker=maker, output=output, arms=arms, left_out=left_out, runs=runs)


def run_experiment(plan: RunningPlan, bars: Bars) -> str | None:
    """Execute all unfinished runs; return the name of the signal that stopped a run with a checkpoint, or None.

    Raises ExperimentError, which names the run, if a run fails. If the user repeats the command, it continues with the
    failed run.
    """
    names = [arm.name for arm in plan.arms]
    write_stored(
        plan.output, with_earlier_deployments(read_stored(plan.output), _kept(plan.file, plan.maker, plan.arms), names)
    )
    for arm, why in plan.left_out:
        bars.note(f"left out: '{arm.name}', because {why}")
    left = plan.unfinished()
    if done := len(plan.runs) - len(left):
        bars.note(f"{done} of {plural(len(plan.runs), 'run')} already finished")
    for number, run in enumerate(left, done + 1):
        bars.note(f"run {number} of {len(plan.runs)}: {run.arm.name}, repeat {run.repeat}")
        try:
            stopped_by = plan.maker.make(run, bars)
        except (TrainingError, DataError) as error:
            raise ExperimentError(f"'{run.arm.name}', repeat {run.repeat}: {error}") from error
        if stopped_by:
            return stopped_by
    return None


def _kept(file: ExperimentFile, maker: RunMaker, arms: Sequence[Arm]) -> StoredExperiment:
    deployments = {arm.name: name for arm in arms if (name := maker.where.deployment_of(arm))}
    return StoredExperiment(
        name=file.name, experiment=file.experiment, cores=maker.where.cores, deployments=deployments, data=maker.data
    )
