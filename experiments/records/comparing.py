"""Several runs beside each other: in which settings they differ, and whether they can be compared at all."""

from collections.abc import Mapping, Sequence
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


def figures(run: RunRecord) -> dict[str, Any]:
    """What a run took and brought; None for what is not known."""
    seconds, rate = run.told("seconds"), run.told("samples_per_second")
    latest = run.steps[-1] if run.steps else None
    return {
        "state": run.state,
        "measures": dict(run.measures),
        "loss": run.test.loss if run.test else latest.loss if latest else None,
        "seconds": run.seconds if seconds is None else seconds,
        "rows_per_second": latest.rows_per_second if rate is None and latest else rate,
        "dollars": run.dollars,
        "left_out": run.left_out,
    }


def common_measures(runs: Sequence[RunRecord]) -> list[str]:
    """The measures that every run has that has any, in the order of the first; without those of its data alone."""
    named = [run.measures for run in runs if run.measures]
    if not named:
        return []
    return [name for name in named[0] if name not in ("majority", "loss") and all(name in each for each in named)]


def warnings(runs: Sequence[RunRecord]) -> list[str]:
    """Sentences on what keeps these runs from being compared, and on what could not be read."""
    found = []
    if len(digests := _groups(runs)) > 1:
        parts = "; ".join(f"{digest[:12]}: {plural(len(members), 'run')}" for digest, members in digests.items())
        found.append(f"these runs learnt from different data, so their measures cannot be compared ({parts})")
    found += [
        f"{run.folder}: {plural(run.left_out, 'line')} of its record left out as damaged, or of another version"
        for run in runs
        if run.left_out
    ]
    return found


def _groups(runs: Sequence[RunRecord]) -> Mapping[str, list[RunRecord]]:
    groups: dict[str, list[RunRecord]] = {}
    for run in runs:
        groups.setdefault(run.latest.digest, []).append(run)
    return groups
