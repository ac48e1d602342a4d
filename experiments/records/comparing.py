"""Compares runs: the settings in which they differ, and warnings if they are not comparable."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from common.display import plural
from experiments.records.runs import RunRecord
from trainer.classification.metrics import few_rows_note

_IRRELEVANT_SETTINGS = ("data", "output", "force", "resume", "cache", "checkpoint_minutes")
"""Settings that affect neither the model nor the speed."""


def differing_settings(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return, for each run, the settings that are not equal in all runs. The number of ranks counts as a setting."""
    all_settings = [
        {
            **{name: value for name, value in run.latest.config.items() if name not in _IRRELEVANT_SETTINGS},
            "epochs": run.latest.epochs,
            "global_batch": run.latest.global_batch,
            "ranks": run.latest.world_size,
            "devices": devices(run.latest.devices)
            if len({*run.latest.devices}) > 1
            else "".join({*run.latest.devices}),
            "rows": run.latest.rows.get("training"),
        }
        for run in runs
    ]
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    differing = [name for name in names if len({repr(settings.get(name)) for settings in all_settings}) > 1]
    return [{name: settings.get(name) for name in differing} for settings in all_settings]


def settings_text(settings: Mapping[str, Any]) -> str:
    """Format settings as text, such as `hidden 64, slow 1:2.0`. Empty settings are left out."""
    return ", ".join(
        f"{name} {_word(value)}" for name, value in settings.items() if value not in (None, "", {}, [], ())
    )


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}:{each}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(_word, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def devices(names: Sequence[str]) -> str:
    """Format the device names of ranks as text. Equal names are combined with their number."""
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """Row in the table of runs. None stands for an unknown value."""

    run: str
    """Name of the run, unique among the runs of the table."""
    folder: str
    state: str
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
    loss: float | None
    seconds: float
    """Seconds of training without evaluation, from the summary. Without a summary, the seconds from the first start to
    the last line of the record."""
    rows_per_second: float | None
    share_of_ideal: float | None
    """Rows per second divided by the sum of the rates that the ranks reach alone."""
    balanced: float | None
    """Rows per second divided by the sum of the rates at which the ranks computed during the run."""
    launched: float
    """Total seconds of all launches."""
    dollars: float | None
    starts: int
    began: str
    """Start of the run in UTC."""
    data: str
    """The dataset's digest, shortened to its first characters."""
    settings: Mapping[str, Any]
    """Settings that differ between the runs of the table."""
    left_out: int
    """Number of lines of the record that could not be used."""


def table_of(runs: Sequence[RunRecord], names: Sequence[str] = ()) -> list[RunRow]:
    """Return one row per run. `names` are the names of the runs, by default the names of their folders."""
    return [
        _row(run, settings, name)
        for run, settings, name in zip(runs, differing_settings(runs), names or [run.name for run in runs], strict=True)
    ]


def _row(run: RunRecord, settings: Mapping[str, Any], name: str) -> RunRow:
    seconds, rate, share = (
        run.summary_number("seconds"),
        run.summary_number("samples_per_second"),
        run.summary_number("share_of_ideal"),
    )
    latest = run.steps[-1] if run.steps else None
    rate = latest.rows_per_second if rate is None and latest else rate
    own = run.own_rates if len(run.own_rates) > 1 and min(run.own_rates) > 0 else ()
    return RunRow(
        run=name,
        folder=str(run.folder),
        state=run.state,
        model=str(run.latest.config.get("model", "-")),
        ranks=run.latest.world_size,
        devices=devices(run.latest.devices),
        where=_where(run),
        rows=run.latest.rows.get("training"),
        epochs=run.latest.epochs,
        global_batch=run.latest.global_batch,
        measures=dict(run.measures),
        loss=run.test.loss if run.test else latest.loss if latest else None,
        seconds=run.seconds if seconds is None else seconds,
        rows_per_second=rate,
        share_of_ideal=rate / sum(own) if share is None and rate is not None and own else share,
        balanced=run.summary_number("balanced"),
        launched=run.launched,
        dollars=run.dollars,
        starts=len(run.starts),
        began=f"{datetime.fromtimestamp(run.begin.time, UTC):%Y-%m-%d %H:%M}",
        data=run.latest.digest[:12],
        settings=settings,
        left_out=run.left_out,
    )


def _where(run: RunRecord) -> str | None:
    latest = run.launches[-1] if run.launches else {}
    where, nodes = latest.get("where"), latest.get("nodes")
    types = (
        [str(each.get("instance_type")) for each in nodes if isinstance(each, dict)] if isinstance(nodes, list) else []
    )
    return ", ".join(each for each in (where, devices(types)) if isinstance(each, str) and each) or None


def common_measures(runs: Sequence[RunRecord]) -> list[str]:
    """Return the names of the measures that every run with measures has, in the order of the first run.

    Measures that depend only on the data, and results of calibration, are left out.
    """
    named = [run.measures for run in runs if run.measures]
    left_out = ("majority", "loss", "temperature", "threshold", "uncalibrated_log_loss")
    return [
        name for name in (named[0] if named else ()) if name not in left_out and all(name in each for each in named)
    ]


def warnings(runs: Sequence[RunRecord]) -> list[str]:
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
