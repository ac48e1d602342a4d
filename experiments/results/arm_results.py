"""What an experiment found: for each of its arms the times of its runs, and how much faster it is than the baseline.

An arm is compared with the baseline of its own kind alone: ranks that sleep with ranks that sleep. Efficiency divides
the speed-up by the ranks; so it is none where ranks differ in speed on purpose, where they compute another thing than
the baseline's, and where they shared cores, which says nothing of ranks that have their own. What ranks reached of the
sum of their own rates is there for all.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from common.display import plural
from common.errors import ExperimentError
from experiments.plans.kept import NAME, PREPROCESSING, Kept, read_kept
from experiments.plans.parts import Arm, Kind, Target
from experiments.plans.planned import run_folder
from experiments.records.comparing import common_measures
from experiments.records.runs import RunRecord, read_all, read_run
from experiments.results.progress import seconds_to
from experiments.results.word_results import WordResult, word_result
from trainer.output.run_files import RECORD, read_json

_AGAIN = "remove its folder, and run the experiment again"
_OF_A_ROW = (
    *("preset", "model", "embedding", "hidden", "layers", "pooling", "ngrams", "char_ngrams", "precision"),
    *("window", "negatives", "subsample", "min_count"),
)
"""Settings by which a row is more or less work."""


class Spread(NamedTuple):
    """A quantity of several runs."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class ArmResult:
    """What the runs of an arm took and brought. What is not known, or has no meaning, is None."""

    name: str
    folder: Path
    """Of its runs, a folder each."""
    place: str | None
    """The deployment; None: this machine."""
    ranks: int | None
    """Of a training; the cores of a preprocessing."""
    sleeps: bool
    """Whether the ranks slept instead of computing."""
    settings: Mapping[str, Any]
    """Of the file, the arm's own in the place of the shared ones, and the `share` of the input to preprocess."""
    runs: tuple[RunRecord, ...]
    """All trainings that have begun."""
    finished: int
    """Of these, or of the preprocessings."""
    seconds: Spread | None
    """Of training, with checkpoints and without evaluation; of preprocessing all. Finished runs alone, as below."""
    rate: Spread | None
    """Rows a second; of preprocessing bytes."""
    to_target: Spread | None
    """Seconds of training to the target; None where a run did not reach it."""
    speed_up: float | None
    """The median rate over that of the baseline."""
    efficiency: float | None
    """That over the ranks, to those of the baseline; for rows that are as much work as the baseline's."""
    target_speed_up: float | None
    """The same for the time to the target."""
    target_efficiency: float | None
    of_bound: float | None
    """The median share of ideal: the rate over the sum of the ranks' own rates."""
    measures: Mapping[str, float]
    """The mean of each measure on the test rows; empty where ranks slept."""
    bytes_a_step: float | None
    """The median of what a rank sends to the others for a step of its own."""
    words: WordResult | None
    """Of word embeddings."""
    dollars: float | None
    """The mean cost of a run."""
    remark: str
    """What a reader must know of it; may be empty."""


@dataclass(frozen=True, kw_only=True)
class ExperimentResult:
    """An experiment and what its runs found so far."""

    folder: Path
    name: str
    about: str
    kind: Kind
    repeats: int
    target: Target | None
    baseline: tuple[str, ...]
    cores: int | None
    """Of the machine; None for deployments."""
    arms: tuple[ArmResult, ...]
    problems: tuple[str, ...]
    """Sentences on runs that cannot be read, and are left out."""


class _Measured(NamedTuple):
    """What a finished run took."""

    seconds: float
    work: float
    """Rows, or bytes."""
    ranks: int
    to_target: float | None = None
    bound: float | None = None
    dollars: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What the folders of an arm hold."""

    arm: Arm
    runs: tuple[RunRecord, ...]
    measured: tuple[_Measured, ...]
    sleeps: bool
    mixed: bool
    ranks: int | None
    problems: tuple[str, ...] = ()

    @property
    def rate(self) -> Spread | None:
        return _spread([each.work / each.seconds for each in self.measured if each.seconds > 0])

    @property
    def to_target(self) -> Spread | None:
        found = [each.to_target for each in self.measured if each.to_target is not None]
        return _spread(found) if len(found) == len(self.measured) else None


def read_experiment(folder: Path) -> ExperimentResult:
    """The experiment in the `--output` of `shoal experiment run`, also one that goes on.

    Raises ExperimentError for a folder that holds none.
    """
    kept = read_kept(folder)
    if kept is None:
        raise ExperimentError(f"{folder} has no {NAME}; give the --output of `shoal experiment run`")
    experiment = kept.experiment
    found = [_read_arm(folder, kept, arm) for arm in experiment.arms]
    baselines = [each for name in experiment.baseline for each in found if each.arm.name == name]
    return ExperimentResult(
        folder=folder,
        name=kept.name,
        about=experiment.about,
        kind=experiment.kind,
        repeats=experiment.repeats,
        target=experiment.target,
        baseline=experiment.baseline,
        cores=kept.cores,
        arms=tuple(_result(folder, kept, each, baselines) for each in found),
        problems=tuple(problem for each in found for problem in each.problems),
    )


def _read_arm(folder: Path, kept: Kept, arm: Arm) -> _Found:
    folders = [run_folder(folder, arm, repeat) for repeat in range(1, kept.experiment.repeats + 1)]
    if kept.experiment.kind == "preprocessing":
        done, problems = read_all(_read_preprocessing, [each for each in folders if (each / PREPROCESSING).exists()])
        workers = {each.ranks for each in done}
        ranks = workers.pop() if len(workers) == 1 else None
        return _Found(
            arm=arm, runs=(), measured=tuple(done), sleeps=False, mixed=False, ranks=ranks, problems=tuple(problems)
        )
    runs, problems = read_all(read_run, [each for each in folders if (each / RECORD).exists()])
    of_run = {run.folder: run for run in runs if run.state == "finished"}
    measured, more = read_all(lambda each: _measured(of_run[each], kept.experiment.target), list(of_run))
    local = arm.local if kept.is_local else None
    sizes = {run.latest.world_size for run in runs}
    return _Found(
        arm=arm,
        runs=tuple(runs),
        measured=tuple(measured),
        sleeps=any(run.sleeps for run in runs),
        mixed=local.is_mixed if local else any(len({*run.latest.devices}) > 1 for run in runs),
        ranks=sizes.pop() if len(sizes) == 1 else local.world_size if local else None,
        problems=(*problems, *more),
    )


def _measured(run: RunRecord, target: Target | None) -> _Measured:
    summary = run.summary or {}
    try:
        seconds, work = float(summary["seconds"]), float(summary["rows_seen"])
    except (KeyError, OverflowError, TypeError, ValueError):
        raise ExperimentError(f"the summary of {run.folder} lacks its seconds or rows; {_AGAIN}") from None
    bound = summary.get("share_of_ideal")
    return _Measured(
        seconds=seconds,
        work=work,
        ranks=run.latest.world_size,
        to_target=None if target is None or run.sleeps else seconds_to(run, target),
        bound=float(bound) if isinstance(bound, int | float) else None,
        dollars=run.dollars,
    )


def _read_preprocessing(folder: Path) -> _Measured:
    path = folder / PREPROCESSING
    content = read_json(path)
    if content is None:
        raise ExperimentError(f"{path} cannot be read; {_AGAIN}")
    try:
        return _Measured(seconds=float(content["seconds"]), work=float(content["bytes"]), ranks=int(content["workers"]))
    except (OverflowError, ValueError, TypeError, KeyError):
        raise ExperimentError(f"{path} lacks the seconds, bytes or workers of its run; {_AGAIN}") from None


def _result(folder: Path, kept: Kept, found: _Found, baselines: Sequence[_Found]) -> ArmResult:
    base = next((each for each in baselines if each.sleeps == found.sleeps and each.measured), None)
    shares_cores = bool(kept.cores and found.ranks and found.ranks > kept.cores and not found.sleeps)
    speed_up = _ratio(found.rate, base.rate if base else None)
    faster = _ratio(base.to_target if base else None, found.to_target)
    ranks = None
    comparable = base and _work(kept, base) == _work(kept, found) and not (found.mixed or base.mixed or shares_cores)
    if base and base.ranks and found.ranks and comparable:
        ranks = found.ranks / base.ranks
    bounds = [each.bound for each in found.measured if each.bound is not None]
    dollars = [each.dollars for each in found.measured if each.dollars is not None]
    finished = [run for run in found.runs if run.state == "finished"]
    sent = [told for run in finished if (told := run.told("bytes_a_step")) is not None]
    return ArmResult(
        name=found.arm.name,
        folder=folder / found.arm.folder,
        place=kept.deployments.get(found.arm.name),
        ranks=found.ranks,
        sleeps=found.sleeps,
        settings={**kept.experiment.settings_of(found.arm), **({"share": found.arm.share} if found.arm.share else {})},
        runs=found.runs,
        finished=len(found.measured),
        seconds=_spread([each.seconds for each in found.measured]),
        rate=found.rate,
        to_target=found.to_target,
        speed_up=speed_up,
        efficiency=speed_up / ranks if speed_up and ranks else None,
        target_speed_up=faster,
        target_efficiency=faster / ranks if faster and ranks else None,
        of_bound=median(bounds) if bounds else None,
        measures={} if found.sleeps else _means(finished),
        bytes_a_step=median(sent) if sent else None,
        words=word_result(finished) if kept.experiment.kind == "words" else None,
        dollars=mean(dollars) if dollars else None,
        remark=_remark(kept, found, shares_cores=shares_cores),
    )


def _work(kept: Kept, found: _Found) -> list[Any]:
    """What makes a row of an arm as much work as it is."""
    settings = kept.experiment.settings_of(found.arm)
    return [settings.get(name) for name in _OF_A_ROW]


def _remark(kept: Kept, found: _Found, *, shares_cores: bool) -> str:
    """What a reader must know of an arm."""
    remarks = []
    if found.sleeps:
        remarks.append("emulated GPU speed")
    if shares_cores and found.ranks and kept.cores:
        remarks.append(f"{plural(found.ranks, 'rank')} on {plural(kept.cores, 'core')}: no efficiency")
    reached = sum(each.to_target is not None for each in found.measured)
    if kept.experiment.target and not found.sleeps and reached < len(found.measured):
        remarks.append(f"{reached} of {plural(len(found.measured), 'run')} reached the target")
    if len(found.measured) < kept.experiment.repeats:
        remarks.append(f"{len(found.measured)} of {plural(kept.experiment.repeats, 'run')} finished")
    return "; ".join(remarks)


def _means(runs: Sequence[RunRecord]) -> dict[str, float]:
    return {name: mean(run.measures[name] for run in runs) for name in common_measures(runs)}


def _spread(values: Sequence[float]) -> Spread | None:
    known = [each for each in values if math.isfinite(each)]
    return Spread(median(known), min(known), max(known)) if known else None


def _ratio(one: Spread | None, other: Spread | None) -> float | None:
    return one.median / other.median if one and other and other.median else None
