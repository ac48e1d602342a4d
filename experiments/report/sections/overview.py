"""What ran, where, on what, from which data, and what came of it: a row for each run."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from experiments.records.causes import goodput
from experiments.records.comparing import common_measures, described, devices, differing_settings, figures
from experiments.records.runs import RunRecord
from experiments.report.figures import Column, Figure, Section, Value, measure_columns
from experiments.report.subjects import Subject

_OF_COLUMNS = ("model", "ranks", "devices", "rows", "epochs", "global_batch")
"""Settings with a column of their own."""
_CAME = ("measure_", "seconds", "rate", "goodput", "dollars")
"""Columns of what came of a run, by the beginnings of their keys."""
_MOST_NOTES = 60


def overview(subjects: Sequence[Subject]) -> Section:
    whole = _runs(subjects)
    if len(subjects) == 1:
        figures = [_upright(whole), _settings(subjects[0])]
    else:
        figures = whole.in_two(_CAME, key="results", title="Results")
    if (notes := _notes(subjects)) is not None:
        figures.append(notes)
    return Section(key="runs", title="What ran", figures=figures)


def _runs(subjects: Sequence[Subject]) -> Figure:
    runs = [each.run for each in subjects]
    measures, restarted = common_measures(runs), any(len(run.starts) > 1 for run in runs)
    columns = [
        Column(key="run", head="run"),
        Column(key="state", head="state"),
        Column(key="model", head="model"),
        Column(key="ranks", head="ranks"),
        Column(key="devices", head="on"),
        Column(key="where", head="where"),
        Column(key="rows", head="rows to train on", form=","),
        Column(key="epochs", head="epochs"),
        Column(key="batch", head="global batch", form=","),
        *measure_columns(measures),
        Column(key="seconds", head="training, s", form=",.1f"),
        Column(key="rate", head="rows/s", form=",.0f"),
        Column(key="goodput", head="goodput", form=".0%"),
        Column(key="dollars", head="cost, $", form=",.2f"),
        Column(key="starts", head="starts"),
        Column(key="repeated", head="steps done twice"),
        Column(key="began", head="began, UTC"),
        Column(key="data", head="data"),
        Column(key="settings", head="settings that differ"),
    ]
    rows: list[list[Value]] = []
    for subject, differing in zip(subjects, differing_settings(runs), strict=True):
        run, found = subject.run, figures(subject.run)
        rows.append(
            [
                subject.name,
                f"{found['state']}, asleep" if run.sleeps else found["state"],
                str(run.latest.config.get("model", "-")),
                run.latest.world_size,
                devices(run.latest.devices),
                _where(run),
                run.latest.rows.get("training"),
                run.latest.epochs,
                run.latest.global_batch,
                *(found["measures"].get(name) for name in measures),
                found["seconds"],
                found["rows_per_second"],
                goodput(run),
                found["dollars"],
                len(run.starts) if restarted else None,
                sum(each.lost for each in run.sessions) if restarted else None,
                f"{datetime.fromtimestamp(run.begin.time, UTC):%Y-%m-%d %H:%M}",
                run.latest.digest[:12],
                described({name: value for name, value in differing.items() if name not in _OF_COLUMNS}),
            ]
        )
    text = (
        "Measures are those on the test rows; of a run that has not ended, those on the validation rows after its "
        "latest epoch. Goodput is the share of the whole time in which rows were computed that count."
    )
    if any(run.sleeps for run in runs):
        text += " Ranks marked as asleep emulate the speed of GPUs, and learn nothing."
    return Figure(key="runs", title="Runs", columns=columns, rows=rows, text=text).without_empty_columns()


def _where(run: RunRecord) -> str | None:
    """This machine or a deployment, with its nodes; None where nothing is known of the launch."""
    where, nodes = run.launch.get("where"), run.launch.get("nodes")
    types = (
        [str(each.get("instance_type")) for each in nodes if isinstance(each, dict)] if isinstance(nodes, list) else []
    )
    return ", ".join(each for each in (where, devices(types)) if isinstance(each, str) and each) or None


def _upright(figure: Figure) -> Figure:
    """The table of a single run, a line for each of its columns."""
    columns = [Column(key="what", head="what"), Column(key="value", head="value")]
    pairs = [[column.head, value] for column, value in zip(figure.columns, figure.cells()[0], strict=True)]
    return replace(figure, title="The run", columns=columns, rows=pairs)


def _settings(subject: Subject) -> Figure:
    settings = subject.run.latest.config
    rows = [[name, described({"": value}).strip() or None] for name, value in settings.items()]
    columns = [Column(key="setting", head="setting"), Column(key="value", head="value")]
    return Figure(key="settings", title="Settings", columns=columns, rows=rows, folded=True)


def _notes(subjects: Sequence[Subject]) -> Figure | None:
    """Problems that did not end the runs."""
    rows: list[list[Value]] = [
        [each.name, each.run.passed(note.time), note.text] for each in subjects for note in each.run.notes
    ]
    if not rows:
        return None
    columns = [
        Column(key="run", head="run"),
        Column(key="time", head="after, s", form=",.1f"),
        Column(key="note", head="note"),
    ]
    left_out = len(rows) - _MOST_NOTES
    text = f"The first {_MOST_NOTES} notes; {left_out} more are in the records." if left_out > 0 else ""
    return Figure(key="notes", title="Notes", columns=columns, rows=rows[:_MOST_NOTES], text=text, folded=True)
