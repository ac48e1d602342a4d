"""Compares runs: one row per run, or per group of repeated runs, and warnings if runs are not comparable.

A repeated run is a run in a folder with a number as its name, such as `small/2`. The repeats in one folder that differ
only in their seed are one group. The table of the command and the page of the report have the same rows.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from common.display import plural
from common.errors import ExperimentError
from experiments.records import ParsedRecord
from trainer.classification.metrics import accuracy_interval, few_rows_note

_IRRELEVANT_SETTINGS = ("data", "output", "force", "resume", "cache", "checkpoint_minutes")
"""Settings that affect neither the model nor the speed."""
_ROW_WORK_SETTINGS = (
    *("model", "embedding", "hidden", "layers", "pooling", "ngrams", "precision"),
    *("window", "negatives", "subsample", "min_count"),
)
"""Settings that change the amount of computation per row."""
_NOT_COMPARED = ("majority", "loss", "temperature", "threshold", "uncalibrated_log_loss")
"""Measures that depend only on the data, and results of calibration."""


@dataclass(frozen=True)
class Group:
    """Repeated runs, or a single run."""

    folder: Path
    """Folder of the single run, or folder that contains the repeated runs."""
    name: str
    """Shortest ending of the folder's path that no other group has."""
    runs: Sequence[ParsedRecord]

    @property
    def counted(self) -> Sequence[ParsedRecord]:
        """The finished runs or, if no run has finished, all runs."""
        return [run for run in self.runs if run.state == "finished"] or self.runs


@dataclass(frozen=True, kw_only=True)
class Row:
    """Row of the table. None stands for an unknown value.

    Numbers of a group are medians of its finished runs. `measures` and `dollars` are means.
    """

    name: str
    folder: str
    state: str
    runs: int
    """Number of finished runs."""
    model: str
    ranks: int
    devices: str
    where: str | None
    """This machine, or a deployment with the instance types of its nodes."""
    rows: int | None
    """Number of training rows."""
    epochs: int
    global_batch: int
    measures: Mapping[str, float]
    """Measures on the test rows. For an unfinished run, measures on the validation rows after its latest epoch."""
    accuracy_interval: str | None
    """95% confidence interval of the accuracy of a single run."""
    loss: float | None
    seconds: float
    """Seconds of training without evaluation, from the summary. Without a summary, the seconds from the first start to
    the last line of the record."""
    least: float | None
    """Seconds of the fastest run of a group."""
    most: float | None
    """Seconds of the slowest run of a group."""
    rows_per_second: float | None
    share_of_ideal: float | None
    """Rows per second divided by the sum of the rates that the ranks reach alone."""
    balanced: float | None
    """Rows per second divided by the sum of the rates at which the ranks computed during the run."""
    dollars: float | None
    speed_up: float | None = None
    """Rows per second divided by those of the baseline."""
    efficiency: float | None = None
    """Speed-up divided by the ratio of the numbers of ranks. None if ranks are slowed down on purpose, or if a row
    takes more or less computation than in the baseline."""
    settings: Mapping[str, Any]
    """Settings that differ between the rows of the table."""


def group_runs(runs: Sequence[ParsedRecord]) -> list[Group]:
    """Return the runs in groups of repeated runs. Each other run is a group of its own.

    If the numbered runs in a folder differ in more than the seed, they are not repeats, and keep their names.
    """
    by_key: dict[tuple[Path, str], list[ParsedRecord]] = {}
    for run in runs:
        folder, settings = run.folder.resolve(), ""
        if folder.name.isdecimal():
            folder, settings = folder.parent, repr({**_settings(run), "seed": None})
        by_key.setdefault((folder, settings), []).append(run)
    parents = Counter(folder for folder, _ in by_key)
    folders = [
        found[0].folder.parent if settings and parents[folder] == 1 else found[0].folder
        for (folder, settings), found in by_key.items()
    ]
    names = short_names(folders)
    return [Group(*each) for each in zip(folders, names, by_key.values(), strict=True)]


def short_names(folders: Iterable[Path]) -> list[str]:
    """Return, for each folder, the shortest ending of its path that no other folder shares."""
    paths = [folder.resolve() for folder in folders]
    for parts in range(1, max((len(path.parts) for path in paths), default=1)):
        names = [str(Path(*path.parts[-parts:])) for path in paths]
        if len({*names}) == len(names):
            return names
    return [str(path) for path in paths]


def make_rows(groups: Sequence[Group], baseline: Path | None = None) -> list[Row]:
    """Return one row per group. `baseline` is the folder of the group with which the others are compared.

    Raises ExperimentError if the baseline is not the folder of a group.
    """
    base = None
    if baseline is not None:
        base = next((each for each in groups if each.folder.resolve() == baseline.resolve()), None)
        if base is None:
            folders = ", ".join(str(each.folder) for each in groups)
            raise ExperimentError(f"--baseline is {baseline}, but must be one of: {folders}")
    all_settings = [{**_settings(group.runs[0]), "where": _where(group.runs[0])} for group in groups]
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    differing = [name for name in names if len({repr(settings.get(name)) for settings in all_settings}) > 1]
    return [
        _row(group, {name: settings.get(name) for name in differing}, base)
        for group, settings in zip(groups, all_settings, strict=True)
    ]


def _settings(run: ParsedRecord) -> dict[str, Any]:
    """Return the settings that affect the model or the speed. Data and hardware count as settings."""
    latest = run.latest
    return {
        **{name: value for name, value in latest.config.items() if name not in _IRRELEVANT_SETTINGS},
        "epochs": latest.epochs,
        "global_batch": latest.global_batch,
        "ranks": latest.world_size,
        "devices": count_names(latest.devices) if len({*latest.devices}) > 1 else "".join({*latest.devices}),
        "rows": latest.rows.get("training"),
    }


def _row(group: Group, settings: Mapping[str, Any], base: Group | None) -> Row:
    run, runs = group.counted[-1], group.counted
    seconds = [_seconds(each) for each in runs]
    paid = [each.dollars for each in runs if each.dollars is not None]
    finished = sum(each.state == "finished" for each in group.runs)
    rate = _middle(map(_rate, runs))
    base_rate = _middle(map(_rate, base.counted)) if base else None
    speed_up = rate / base_rate if rate and base_rate else None
    several = len(runs) > 1
    names = dict.fromkeys(name for each in runs for name in each.measures)
    low, high = accuracy_interval(run.confusion[1]) if run.confusion and not several else (None, None)
    return Row(
        name=group.name,
        folder=str(group.folder),
        state=run.state if len(group.runs) == 1 else f"{finished} of {len(group.runs)} finished",
        runs=finished,
        model=str(run.latest.config.get("model", "-")),
        ranks=run.latest.world_size,
        devices=count_names(run.latest.devices),
        where=_where(run),
        rows=run.latest.rows.get("training"),
        epochs=run.latest.epochs,
        global_batch=run.latest.global_batch,
        measures={name: fmean(each.measures[name] for each in runs if name in each.measures) for name in names},
        accuracy_interval=None if low is None else f"{low:.4f} to {high:.4f}",
        loss=_middle(map(_loss, runs)),
        seconds=median(seconds),
        least=min(seconds) if several else None,
        most=max(seconds) if several else None,
        rows_per_second=rate,
        share_of_ideal=_middle(each.summary_number("share_of_ideal") for each in runs),
        balanced=_middle(each.summary_number("balanced") for each in runs),
        dollars=fmean(paid) if paid else None,
        speed_up=speed_up,
        efficiency=speed_up / ratio
        if base and speed_up and (ratio := _ratio_of_ranks(run, base.counted[-1]))
        else None,
        settings=settings,
    )


def _seconds(run: ParsedRecord) -> float:
    seconds = run.summary_number("seconds")
    return run.seconds if seconds is None else seconds


def _rate(run: ParsedRecord) -> float | None:
    rate = run.summary_number("samples_per_second")
    return run.steps[-1].rows_per_second if rate is None and run.steps else rate


def _loss(run: ParsedRecord) -> float | None:
    return run.test.loss if run.test else run.steps[-1].loss if run.steps else None


def _ratio_of_ranks(run: ParsedRecord, base: ParsedRecord) -> float | None:
    """Return the number of ranks divided by that of the baseline, or None if the two runs do not show how well ranks
    scale."""
    one, other = run.latest.config, base.latest.config
    same_work = all(one.get(name) == other.get(name) for name in _ROW_WORK_SETTINGS)
    slowed = one.get("slow") or other.get("slow")
    return run.latest.world_size / base.latest.world_size if same_work and not slowed else None


def _middle(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return median(known) if known else None


def _where(run: ParsedRecord) -> str | None:
    latest = run.launches[-1] if run.launches else {}
    where, nodes = latest.get("where"), latest.get("nodes")
    types = (
        [str(each.get("instance_type")) for each in nodes if isinstance(each, dict)] if isinstance(nodes, list) else []
    )
    return ", ".join(each for each in (where, count_names(types)) if isinstance(each, str) and each) or None


def count_names(names: Sequence[str]) -> str:
    """Format names, such as those of devices, as text. Equal names are combined with their number."""
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def settings_text(settings: Mapping[str, Any]) -> str:
    """Format settings as text, such as `hidden 64, slow 1:2.0`. Empty settings are left out."""
    return ", ".join(
        f"{name} {_value_text(value)}" for name, value in settings.items() if value not in (None, "", {}, [], ())
    )


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}:{each}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(_value_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def common_measures(rows: Sequence[Row]) -> list[str]:
    """Return the names of the compared measures that every row with measures has, in the order of the first row."""
    measured = [row.measures for row in rows if row.measures]
    return [
        name
        for name in (measured[0] if measured else ())
        if name not in _NOT_COMPARED and all(name in each for each in measured)
    ]


def warnings(runs: Sequence[ParsedRecord]) -> list[str]:
    """Return warnings if the runs used different data, lines of a record were unreadable, or a test set is small."""
    messages = []
    if len(digests := Counter(run.latest.digest for run in runs)) > 1:
        parts = "; ".join(f"{digest[:12]}: {plural(count, 'run')}" for digest, count in digests.items())
        messages.append(f"these runs used different data, so do not compare their measures ({parts})")
    messages += [
        f"{run.folder}: skipped {plural(run.left_out, 'line')} of the record (damaged, or from a different version)"
        for run in runs
        if run.left_out
    ]
    rows = [matrix.rows for _, matrix in filter(None, (run.confusion for run in runs))]
    note = few_rows_note(min(rows, default=0))
    return [*messages, note] if note else messages
