"""Several runs beside each other: in which settings they differ, and whether they can be compared at all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from common.display import plural
from experiments.records.runs import RunRecord

_NO_SETTINGS = ("data", "output", "force", "resume", "cache", "checkpoint_minutes", "record_every")
"""What does not change what is learnt, nor how fast."""


def differing_settings(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """For each run the settings in which not all runs agree, with the number of its ranks."""
    all_settings = [
        {
            **{name: value for name, value in run.latest.config.items() if name not in _NO_SETTINGS},
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
    apart = [name for name in names if len({repr(settings.get(name)) for settings in all_settings}) > 1]
    return [{name: settings.get(name) for name in apart} for settings in all_settings]


def described(settings: Mapping[str, Any]) -> str:
    """Settings in words, such as `hidden 64, slow 1:2.0`; without those that are empty."""
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
    """The devices of ranks, equal ones counted."""
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A run in the table of runs; None for what is not known."""

    run: str
    """Its name among these runs."""
    folder: str
    state: str
    model: str
    ranks: int
    devices: str
    where: str | None
    """This machine or a deployment, with its nodes."""
    rows: int | None
    """To train on."""
    epochs: int
    global_batch: int
    measures: Mapping[str, float]
    """On the test rows; of a run that has not ended, on the validation rows after its latest epoch."""
    loss: float | None
    seconds: float
    """Of training, without evaluation, where the run told it; else from its start to its last line."""
    rows_per_second: float | None
    share_of_ideal: float | None
    """The rate over the sum of the rates that the ranks reach by themselves."""
    balanced: float | None
    """The same, of the rates that the ranks had during the run."""
    launched: float
    """Seconds of all its launches."""
    dollars: float | None
    starts: int
    began: str
    """In UTC."""
    data: str
    """The beginning of the dataset's digest."""
    settings: Mapping[str, Any]
    """Those in which not all runs of the table agree."""
    left_out: int
    """Lines of the record that could not be used."""


def table_of(runs: Sequence[RunRecord], names: Sequence[str] = ()) -> list[RunRow]:
    """What runs were, took and brought, a row each; `names`: those of the runs, by default their folders'."""
    return [
        _row(run, settings, name)
        for run, settings, name in zip(runs, differing_settings(runs), names or [run.name for run in runs], strict=True)
    ]


def _row(run: RunRecord, settings: Mapping[str, Any], name: str) -> RunRow:
    seconds, rate, share = run.told("seconds"), run.told("samples_per_second"), run.told("share_of_ideal")
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
        balanced=run.told("balanced"),
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
    """The measures that every run has that has any, in the order of the first; without those of its data alone, and
    without what calibration chose."""
    named = [run.measures for run in runs if run.measures]
    left_out = ("majority", "loss", "temperature", "threshold", "uncalibrated_log_loss")
    return [
        name for name in (named[0] if named else ()) if name not in left_out and all(name in each for each in named)
    ]


def warnings(runs: Sequence[RunRecord]) -> list[str]:
    """Sentences on what keeps these runs from being compared, and on what could not be read."""
    found = []
    if len(digests := Counter(run.latest.digest for run in runs)) > 1:
        parts = "; ".join(f"{digest[:12]}: {plural(count, 'run')}" for digest, count in digests.items())
        found.append(f"these runs learnt from different data, so their measures cannot be compared ({parts})")
    found += [
        f"{run.folder}: {plural(run.left_out, 'line')} of its record left out as damaged, or of another version"
        for run in runs
        if run.left_out
    ]
    return found
