"""What an experiment found: for each of its arms the times of its runs, and how much faster it is than the baseline.

Efficiency divides the speed-up by the ranks; so it is none where ranks differ in speed on purpose, where they compute
another thing than the baseline's, and where they shared cores, which says nothing of ranks that have their own. What
ranks reached of the sum of their own rates is there for all.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from common.display import plural
from common.errors import ExperimentError
from experiments.plans.kept import NAME, PREPROCESSING, Kept, read_kept
from experiments.plans.parts import Arm, run_folder
from experiments.records.comparing import common_measures
from experiments.records.runs import RunRecord, numbers, read_all, read_run
from trainer.options.embedding_options import PIP_LOSS, PIP_MEAN_SQUARE
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
    is_mixed: bool
    """Whether the ranks differ in speed on purpose."""
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
    of_bound: float | None
    """The median share of ideal: the rate over the sum of the ranks' own rates."""
    measures: Mapping[str, float]
    """The mean of each measure on the test rows."""
    bytes_a_step: float | None
    """The median of what a rank sends to the others for a step of its own."""
    words: Mapping[str, float]
    """Of word embeddings: `seconds_an_epoch` and `words_a_second` (medians; without evaluation; of all running words),
    and the means of the best `pip_loss` and `pip_mean_square` after any epoch, as in the tables that these are compared
    with, and of the `loss` of a pair at the end."""
    dollars: float | None
    """The mean cost of a run."""
    speed_up: float | None = None
    """The median rate over that of the baseline."""
    efficiency: float | None = None
    """That over the ranks, to those of the baseline; for rows that are as much work as the baseline's."""
    remark: str = ""
    """What a reader must know of it."""
    problems: Sequence[str] = ()
    """Sentences on runs that cannot be read, and are left out."""


@dataclass(frozen=True, kw_only=True)
class ExperimentResult:
    """An experiment and what its runs found so far."""

    folder: Path
    kept: Kept
    arms: tuple[ArmResult, ...]

    @property
    def problems(self) -> list[str]:
        """Sentences on runs that cannot be read, and are left out."""
        return [problem for arm in self.arms for problem in arm.problems]


class _Measured(NamedTuple):
    """What a finished run took."""

    seconds: float
    work: float
    """Rows, or bytes."""
    ranks: int
    bound: float | None = None
    dollars: float | None = None


def read_experiment(folder: Path) -> ExperimentResult:
    """The experiment in the `--output` of `shoal experiment run`, also one that goes on.

    Raises ExperimentError for a folder that holds none.
    """
    kept = read_kept(folder)
    if kept is None:
        raise ExperimentError(f"{folder} has no {NAME}; give the --output of `shoal experiment run`")
    arms = [_read_arm(folder, kept, arm) for arm in kept.experiment.arms]
    baselines = [each for name in kept.experiment.baseline for each in arms if each.name == name]
    return ExperimentResult(folder=folder, kept=kept, arms=tuple(_compared(each, kept, baselines) for each in arms))


def _read_arm(folder: Path, kept: Kept, arm: Arm) -> ArmResult:
    """What an arm's runs took, beside no other arm."""
    experiment, local = kept.experiment, arm.local if kept.is_local else None
    folders = [run_folder(folder, arm, repeat) for repeat in range(1, experiment.repeats + 1)]
    runs: list[RunRecord] = []
    if experiment.kind == "preprocessing":
        measured, problems = read_all(_preprocessed, [each for each in folders if (each / PREPROCESSING).exists()])
        sizes = {each.ranks for each in measured}
    else:
        runs, problems = read_all(read_run, [each for each in folders if (each / RECORD).exists()])
        of_run = {run.folder: run for run in runs if run.state == "finished"}
        measured, more = read_all(lambda each: _measured(of_run[each]), list(of_run))
        problems += more
        sizes = {run.latest.world_size for run in runs}
    finished = [run for run in runs if run.state == "finished"]
    rates = [each.work / each.seconds for each in measured if each.seconds > 0]
    bounds = [each.bound for each in measured if each.bound is not None]
    dollars = [each.dollars for each in measured if each.dollars is not None]
    sent = [told for run in finished if (told := run.told("bytes_a_step")) is not None]
    return ArmResult(
        name=arm.name,
        folder=folder / arm.folder,
        place=kept.deployments.get(arm.name),
        ranks=sizes.pop() if len(sizes) == 1 else (local.world_size or None) if local else None,
        is_mixed=local.is_mixed if local else any(len({*run.latest.devices}) > 1 for run in runs),
        settings={**experiment.settings_of(arm), **({"share": arm.share} if arm.share else {})},
        runs=tuple(runs),
        finished=len(measured),
        seconds=_spread([each.seconds for each in measured]),
        rate=_spread(rates),
        of_bound=median(bounds) if bounds else None,
        measures={name: mean(run.measures[name] for run in finished) for name in common_measures(finished)},
        bytes_a_step=median(sent) if sent else None,
        words=_words(finished) if experiment.kind == "words" else {},
        dollars=mean(dollars) if dollars else None,
        problems=problems,
    )


def _measured(run: RunRecord) -> _Measured:
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
        bound=float(bound) if isinstance(bound, int | float) else None,
        dollars=run.dollars,
    )


def _preprocessed(folder: Path) -> _Measured:
    path = folder / PREPROCESSING
    content = read_json(path)
    if content is None:
        raise ExperimentError(f"{path} cannot be read; {_AGAIN}")
    try:
        return _Measured(seconds=float(content["seconds"]), work=float(content["bytes"]), ranks=int(content["workers"]))
    except (OverflowError, ValueError, TypeError, KeyError):
        raise ExperimentError(f"{path} lacks the seconds, bytes or workers of its run; {_AGAIN}") from None


def _words(runs: Sequence[RunRecord]) -> dict[str, float]:
    """What finished runs that learnt word embeddings found."""
    told = [
        (seconds / epochs, rate * words)
        for run in runs
        if (seconds := run.told("seconds")) is not None
        and (rate := run.told("samples_per_second")) is not None
        and (words := run.told("words_a_row")) is not None
        and (epochs := run.told("epochs"))
    ]
    if not told:
        return {}
    found = {"seconds_an_epoch": median(each for each, _ in told), "words_a_second": median(each for _, each in told)}
    for measure in (PIP_LOSS, PIP_MEAN_SQUARE):
        values = [[of[measure] for epoch in run.epochs if measure in (of := numbers(epoch.validation))] for run in runs]
        if best := [min(each) for each in values if each]:
            found[measure] = mean(best)
    losses = [run.test.loss for run in runs if run.test is not None]
    return {**found, **({"loss": mean(losses)} if losses else {})}


def _compared(arm: ArmResult, kept: Kept, baselines: Sequence[ArmResult]) -> ArmResult:
    """The arm beside the first baseline that has runs."""
    base = next((each for each in baselines if each.finished), None)
    shares_cores = bool(kept.cores and arm.ranks and arm.ranks > kept.cores)
    speed_up = _ratio(arm.rate, base.rate if base else None)
    ranks = None
    if base and base.ranks and arm.ranks and not (arm.is_mixed or base.is_mixed or shares_cores):
        same_work = all(base.settings.get(name) == arm.settings.get(name) for name in _OF_A_ROW)
        ranks = arm.ranks / base.ranks if same_work else None
    return replace(
        arm,
        speed_up=speed_up,
        efficiency=speed_up / ranks if speed_up and ranks else None,
        remark="; ".join(_remarks(arm, kept, shares_cores=shares_cores)),
    )


def _remarks(arm: ArmResult, kept: Kept, *, shares_cores: bool) -> Iterator[str]:
    repeats = kept.experiment.repeats
    if shares_cores:
        yield f"{plural(arm.ranks or 0, 'rank')} on {plural(kept.cores or 0, 'core')}: no efficiency"
    if arm.finished < repeats:
        yield f"{arm.finished} of {plural(repeats, 'run')} finished"


def _spread(values: Sequence[float]) -> Spread | None:
    known = [each for each in values if math.isfinite(each)]
    return Spread(median(known), min(known), max(known)) if known else None


def _ratio(one: Spread | None, other: Spread | None) -> float | None:
    return one.median / other.median if one and other and other.median else None
