"""How fast ranks are, from runs that they made: the line of each rank's own time, and what else a step takes.

A run that is to be predicted differs in its rows, its global batch, or its mixture of ranks. So a rate in rows a second
is not enough: a step has a fixed part, too. Do not use a run's first steps: caches are cold, and code is still loaded.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np

from common.errors import ExperimentError
from experiments.records.finding import find_runs
from experiments.records.runs import RunRecord, read_run
from trainer.balancing.speed import TimeModel, fit_time_model
from trainer.balancing.split import finish_time
from trainer.output.lines import Step

_COLD = 3
"""Steps at a run's beginning that do not count, if there are more."""
_OFF = 0.1
"""By what share a time is expected to be off that follows from runs on the same machines."""

_OF_THE_MODEL = ("model", "embedding", "hidden", "layers", "ngrams", "char_ngrams", "optimiser", "exchange")
"""Settings on which the time of a step depends."""
_OF_THE_RANKS = ("slow", "sleep", "threads")


class Node(NamedTuple):
    """A GPU node."""

    instance_type: str
    gpus: int
    """Of its GPUs those that are used, a rank each."""
    efa: bool = False
    """Whether it has EFA interfaces, which reach others through all of its network cards."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The times of ranks that train one model on texts of one kind."""

    source: str
    """Where they are from, for the user."""
    off: float
    """By what share predictions are expected to be off."""
    model: Mapping[str, Any]
    """The settings of the model that was trained and of its steps, as far as the record has them."""
    nodes: tuple[Node, ...]
    """The GPU nodes of a deployment that had the ranks; none for a run of this machine."""
    ranks: tuple[TimeModel, ...]
    """Each rank's own seconds for a step of so many rows."""
    others: TimeModel
    """What a step takes besides the computing of the slowest rank, by the rows of the global batch: finding and
    packing, the sum over the ranks, waits that no split avoids, and the optimiser."""
    evaluation: float
    """Seconds a row that is evaluated, of all ranks together."""
    loading: TimeModel
    """Seconds until the ranks measure their rates, by the rows of the dataset."""
    around: float
    """Seconds of everything else that happens once: starting processes, measuring rates, saving the model."""
    checkpoint: float
    """Seconds of a checkpoint."""


def rates_of(runs: Sequence[RunRecord]) -> Rates:
    """The rates that these runs show, all of which must be of the same ranks and the same model.

    Raises ExperimentError, which names the run, for one that does not fit or has not ended.
    """
    first = runs[0]
    for run in runs:
        _require_ended(run)
        if _kind(run) != _kind(first):
            raise ExperimentError(
                f"{run.folder} is not of the same model and ranks as {first.folder}; give runs that differ in rows and "
                "global batch alone"
            )
    ranks = tuple(_line_of_rank(runs, rank) for rank in range(first.latest.world_size))
    summaries, config = [_summary(run) for run in runs], first.latest.config
    evaluated = [
        run.latest.rows.get("validation", 0) * len(run.epochs) + run.latest.rows.get("test", 0) * (run.test is not None)
        for run in runs
    ]
    saved = [len([each for each in run.checkpoints if each.time >= run.latest.time]) for run in runs]
    return Rates(
        source=f"measured, {config.get('model')}: {', '.join(str(run.folder) for run in runs)}",
        off=_OFF,
        model={name: config[name] for name in _OF_THE_MODEL if name in config},
        nodes=_nodes(first),
        ranks=ranks,
        others=_line([(run.latest.global_batch, _beside(run, ranks)) for run in runs]),
        evaluation=median(
            [
                summary["times"]["evaluation"] / count
                for summary, count in zip(summaries, evaluated, strict=True)
                if count
            ]
            or [0.0]
        ),
        loading=_line([(sum(run.latest.rows.values()), _summary(run)["times"]["loading"]) for run in runs]),
        around=median([_around(run) for run in runs]),
        checkpoint=median(
            [summary["times"]["checkpoints"] / count for summary, count in zip(summaries, saved, strict=True) if count]
            or [0.0]
        ),
    )


def read_rates(paths: Sequence[Path]) -> Rates:
    """The rates of the runs in these folders, and in folders below them. Raises ExperimentError as `rates_of` does, and
    for a path without a run."""
    return rates_of([read_run(folder) for folder in find_runs(paths)])


def is_alike(run: RunRecord, config: Mapping[str, Any], ranks: int) -> bool:
    """Whether a run had so many ranks, and all settings of `config` (as a record has them) that a step's time is by."""
    return run.latest.world_size == ranks and _settings(run.latest.config) == _settings(config)


def _kind(run: RunRecord) -> tuple[Any, ...]:
    """What two runs must have in common."""
    return (run.latest.world_size, *run.latest.devices, *_nodes(run), *_settings(run.latest.config))


def _settings(config: Mapping[str, Any]) -> list[str]:
    """The settings that the time of a step depends on."""
    return [repr(config.get(name)) for name in (*_OF_THE_MODEL, *_OF_THE_RANKS)]


def _nodes(run: RunRecord) -> tuple[Node, ...]:
    """The GPU nodes of a run, in order; none where launch.json does not tell."""
    try:
        return tuple(sorted(Node(str(each["instance_type"]), int(each["gpus"])) for each in run.launch["nodes"]))
    except (KeyError, TypeError, ValueError):
        return ()


def _require_ended(run: RunRecord) -> None:
    if run.state == "unfinished" or not run.steps or "times" not in (run.summary or {}):
        raise ExperimentError(f"{run.folder} has not ended, or has no step; give a run that has")


def _summary(run: RunRecord) -> dict[str, Any]:
    assert run.summary is not None
    return dict(run.summary)


def _steps(run: RunRecord) -> Sequence[Step]:
    """The steps since its latest start whose times count."""
    own = [step for step in run.steps if step.step > run.latest.from_step and any(step.compute_seconds)]
    return own[_COLD:] if len(own) > 2 * _COLD else own


def _line_of_rank(runs: Sequence[RunRecord], rank: int) -> TimeModel:
    points = [
        (float(step.split[rank]), step.compute_seconds[rank])
        for run in runs
        for step in _steps(run)
        if step.split[rank] and step.compute_seconds[rank]
    ]
    if not points:
        raise ExperimentError(
            f"{runs[0].folder}: rank {rank} has no step with rows and a time; give a run in which it has"
        )
    return fit_time_model(points)


def _beside(run: RunRecord, ranks: Sequence[TimeModel]) -> float:
    """What a step of this run took besides its slowest rank's computing."""
    fixed, per_row = np.array(ranks).T
    start, computing = run.latest, defaultdict[int, list[float]](list)
    for step in _steps(run):
        computing[sum(step.split)].append(finish_time(np.array(step.split), fixed, per_row))
    # Which steps are recorded depends on the clock, so those that end an epoch count as often as they were made.
    of_epoch, size = max(1, start.steps // max(1, start.epochs)), start.rows.get("training", 0) % start.global_batch
    made = run.steps[-1].step - start.from_step
    short = run.steps[-1].step // of_epoch - start.from_step // of_epoch if size else 0
    whole = mean(computing.get(start.global_batch) or [time for times in computing.values() for time in times])
    last = mean(computing[size]) if size in computing else whole * size / start.global_batch
    trained: float = _summary(run)["times"]["training"]
    return max(0.0, (trained - whole * (made - short) - last * short) / made)


def _around(run: RunRecord) -> float:
    """What the command took besides what the record tells of reading, training and evaluation."""
    summary = _summary(run)
    times = summary["times"]
    whole = _launch_seconds(run)
    return whole - float(sum(times[name] for name in ("loading", "training", "evaluation", "checkpoints")))


def _launch_seconds(run: RunRecord) -> float:
    """Seconds of the command on the ranks: of a deployment those of its stage `train`, without the start of nodes."""
    try:
        stages = {each["name"]: float(each["seconds"]) for each in run.launch.get("stages", ())}
        return stages.get("train", float(run.launch.get("seconds", _summary(run)["wall"])))
    except (KeyError, TypeError, ValueError):
        return float(_summary(run)["wall"])


def _line(points: Sequence[tuple[float, float]]) -> TimeModel:
    """The line through few points, which is flat if there is one, or if they fall; nowhere below 0."""
    sizes, times = np.array(points, dtype=float).T
    if len(set(sizes.tolist())) < 2:
        return TimeModel(float(np.median(times)), 0.0)
    slope = float(np.polyfit(sizes, times, 1)[0])
    if slope <= 0:
        return TimeModel(float(times.mean()), 0.0)
    start = float((times - slope * sizes).mean())
    return TimeModel(start, slope) if start >= 0 else TimeModel(0.0, float((times @ sizes) / (sizes @ sizes)))
