"""Results of an experiment: the times of each arm's runs, and the arm's speed-up over the baseline.

Efficiency is the speed-up divided by the ratio of the numbers of ranks. An arm has no efficiency if its ranks differ in
speed, or if its work differs from the baseline's work. It also has no efficiency if its ranks share cores, because such
ranks do not show how fast ranks with separate cores are. Every arm has a share of ideal.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from common.display import plural
from common.errors import ExperimentError
from experiments.plans.parts import Arm, run_folder
from experiments.plans.stored import NAME, PREPROCESSING, StoredExperiment, read_stored
from experiments.records.comparing import common_measures
from experiments.records.runs import RunRecord, numbers, read_all, read_run
from trainer.options.embedding_options import PIP_LOSS, PIP_MEAN_SQUARE
from trainer.output.run_files import RECORD, read_json

_RUN_AGAIN = "remove its folder, and run the experiment again"
_ROW_WORK_SETTINGS = (
    *("preset", "model", "embedding", "hidden", "layers", "pooling", "ngrams", "char_ngrams", "precision"),
    *("window", "negatives", "subsample", "min_count"),
)
"""Settings that change the amount of computation per row."""


class Spread(NamedTuple):
    """Median and range of a quantity over several runs."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class ArmResult:
    """Results of an arm's runs. None means that a value is unknown or has no meaning."""

    name: str
    folder: Path
    """Folder of the arm. It contains one folder per run."""
    place: str | None
    """Name of the deployment, or None for this machine."""
    ranks: int | None
    """Number of ranks in training runs, or number of cores in preprocessing runs."""
    is_mixed: bool
    """Whether the ranks differ in speed on purpose."""
    settings: Mapping[str, Any]
    """Settings of the arm, including the shared settings, and the `share` of the input to preprocess."""
    runs: tuple[RunRecord, ...]
    """All training runs that have started."""
    finished: int
    """Number of finished training or preprocessing runs."""
    seconds: Spread | None
    """Seconds of finished runs. For training runs, they include checkpoints, but not evaluation."""
    rate: Spread | None
    """Rows per second of finished training runs, or bytes per second of finished preprocessing runs."""
    of_bound: float | None
    """Median share of ideal: the rate divided by the sum of the rates that the ranks reach alone."""
    measures: Mapping[str, float]
    """Mean of each measure on the test rows."""
    bytes_a_step: float | None
    """Median number of bytes that a rank sends to other ranks in one of its steps."""
    words: Mapping[str, float]
    """Results of word embeddings.

    `seconds_an_epoch` and `words_a_second` (all running words) are medians, without evaluation. `pip_loss` and
    `pip_mean_square` are means of each run's best value after any epoch, as in the published tables that they are
    compared with. `loss` is the mean of the final loss per pair.
    """
    dollars: float | None
    """Mean cost of a run in dollars."""
    speed_up: float | None = None
    """Median rate divided by the median rate of the baseline."""
    efficiency: float | None = None
    """Speed-up divided by the ratio of the numbers of ranks. Missing if a row takes more or less computation than in
    the baseline."""
    remark: str = ""
    """Remark on the arm for the user."""
    problems: Sequence[str] = ()
    """Messages about unreadable runs, which are left out."""


@dataclass(frozen=True, kw_only=True)
class ExperimentResult:
    """An experiment, and the results of its runs so far."""

    folder: Path
    kept: StoredExperiment
    arms: tuple[ArmResult, ...]

    @property
    def problems(self) -> list[str]:
        """Messages about unreadable runs, which are left out."""
        return [problem for arm in self.arms for problem in arm.problems]


class _Measurement(NamedTuple):
    """Measurements of a finished run."""

    seconds: float
    work: float
    """Rows that a training run processed, or bytes that a preprocessing run read."""
    ranks: int
    bound: float | None = None
    dollars: float | None = None


def read_experiment(folder: Path) -> ExperimentResult:
    """Return the experiment and its results so far from a folder, which is the `--output` of `shoal experiment run`.

    The experiment can still be running. Raises ExperimentError if the folder has no experiment.
    """
    kept = read_stored(folder)
    if kept is None:
        raise ExperimentError(f"{folder} has no {NAME}; give the --output of `shoal experiment run`")
    arms = [_read_arm(folder, kept, arm) for arm in kept.experiment.arms]
    baselines = [each for name in kept.experiment.baseline for each in arms if each.name == name]
    return ExperimentResult(folder=folder, kept=kept, arms=tuple(_compare(each, kept, baselines) for each in arms))


def _read_arm(folder: Path, kept: StoredExperiment, arm: Arm) -> ArmResult:
    """Return the results of an arm's runs, without a comparison to the baseline."""
    experiment, local = kept.experiment, arm.local if kept.is_local else None
    folders = [run_folder(folder, arm, repeat) for repeat in range(1, experiment.repeats + 1)]
    runs: list[RunRecord] = []
    if experiment.kind == "preprocessing":
        measured, problems = read_all(
            _read_preprocessing, [each for each in folders if os.path.lexists(each / PREPROCESSING)]
        )
        sizes = {each.ranks for each in measured}
    else:
        runs, problems = read_all(read_run, [each for each in folders if os.path.lexists(each / RECORD)])
        finished_runs = {run.folder: run for run in runs if run.state == "finished"}
        measured, more = read_all(lambda each: _read_training(finished_runs[each]), list(finished_runs))
        problems += more
        sizes = {run.latest.world_size for run in runs}
    finished = [run for run in runs if run.state == "finished"]
    rates = [each.work / each.seconds for each in measured if each.seconds > 0]
    bounds = [each.bound for each in measured if each.bound is not None]
    dollars = [each.dollars for each in measured if each.dollars is not None]
    sent = [figures for run in finished if (figures := run.summary_number("bytes_a_step")) is not None]
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


def _read_training(run: RunRecord) -> _Measurement:
    summary = run.summary or {}
    try:
        seconds, work = float(summary["seconds"]), float(summary["rows_seen"])
    except (KeyError, OverflowError, TypeError, ValueError):
        raise ExperimentError(
            f"the summary of {run.folder} lacks the seconds or rows of the run; {_RUN_AGAIN}"
        ) from None
    bound = summary.get("share_of_ideal")
    return _Measurement(
        seconds=seconds,
        work=work,
        ranks=run.latest.world_size,
        bound=float(bound) if isinstance(bound, int | float) else None,
        dollars=run.dollars,
    )


def _read_preprocessing(folder: Path) -> _Measurement:
    path = folder / PREPROCESSING
    content = read_json(path)
    if content is None:
        raise ExperimentError(f"Shoal cannot read {path}; {_RUN_AGAIN}")
    try:
        return _Measurement(
            seconds=float(content["seconds"]), work=float(content["bytes"]), ranks=int(content["workers"])
        )
    except (OverflowError, ValueError, TypeError, KeyError):
        raise ExperimentError(f"{path} lacks the seconds, bytes or workers of the run; {_RUN_AGAIN}") from None


def _words(runs: Sequence[RunRecord]) -> dict[str, float]:
    """Return the results of finished word-embedding runs, for `ArmResult.words`."""
    figures = [
        (seconds / epochs, rate * words)
        for run in runs
        if (seconds := run.summary_number("seconds")) is not None
        and (rate := run.summary_number("samples_per_second")) is not None
        and (words := run.summary_number("words_a_row")) is not None
        and (epochs := run.summary_number("epochs"))
    ]
    if not figures:
        return {}
    results = {
        "seconds_an_epoch": median(each for each, _ in figures),
        "words_a_second": median(each for _, each in figures),
    }
    for measure in (PIP_LOSS, PIP_MEAN_SQUARE):
        values = [[of[measure] for epoch in run.epochs if measure in (of := numbers(epoch.validation))] for run in runs]
        if best := [min(each) for each in values if each]:
            results[measure] = mean(best)
    losses = [run.test.loss for run in runs if run.test is not None]
    return {**results, **({"loss": mean(losses)} if losses else {})}


def _compare(arm: ArmResult, kept: StoredExperiment, baselines: Sequence[ArmResult]) -> ArmResult:
    """Return the results of the arm with its speed-up over the first baseline that has finished runs."""
    base = next((each for each in baselines if each.finished), None)
    shares_cores = bool(kept.cores and arm.ranks and arm.ranks > kept.cores)
    speed_up = _ratio(arm.rate, base.rate if base else None)
    ranks = None
    if base and base.ranks and arm.ranks and not (arm.is_mixed or base.is_mixed or shares_cores):
        same_work = all(base.settings.get(name) == arm.settings.get(name) for name in _ROW_WORK_SETTINGS)
        ranks = arm.ranks / base.ranks if same_work else None
    return replace(
        arm,
        speed_up=speed_up,
        efficiency=speed_up / ranks if speed_up and ranks else None,
        remark="; ".join(_remarks(arm, kept, shares_cores=shares_cores)),
    )


def _remarks(arm: ArmResult, kept: StoredExperiment, *, shares_cores: bool) -> Iterator[str]:
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
