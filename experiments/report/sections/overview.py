"""What ran, on what, from which data, and what came of it: a row for each run."""

from collections.abc import Sequence
from dataclasses import replace

from experiments.causes import goodput
from experiments.comparing import common_measures, devices, differing_settings, figures
from experiments.report.figures import Column, Figure, Section, Value
from experiments.report.subjects import Subject


def overview(subjects: Sequence[Subject]) -> Section:
    """The section of all runs."""
    runs = [each.run for each in subjects]
    measures = common_measures(runs)
    columns = [
        Column(key="run", head="run"),
        Column(key="state", head="state"),
        Column(key="model", head="model"),
        Column(key="ranks", head="ranks"),
        Column(key="devices", head="on"),
        Column(key="data", head="data"),
        Column(key="rows", head="rows to train on", form=","),
        Column(key="epochs", head="epochs"),
        *([Column(key="settings", head="settings that differ")] if len(runs) > 1 else []),
        *(Column(key=f"measure_{number}", head=name, form=".4f") for number, name in enumerate(measures)),
        Column(key="seconds", head="training, s", form=",.1f"),
        Column(key="rate", head="rows/s", form=",.0f"),
        Column(key="goodput", head="goodput", form=".0%"),
        Column(key="dollars", head="cost, $", form=",.2f"),
    ]
    rows: list[list[Value]] = []
    for subject, differing in zip(subjects, differing_settings(runs), strict=True):
        run, found = subject.run, figures(subject.run)
        settings = ", ".join(f"{name} {value}" for name, value in differing.items() if value is not None)
        rows.append(
            [
                subject.name,
                f"{found['state']}, asleep" if run.sleeps else found["state"],
                str(run.latest.config.get("model", "-")),
                run.latest.world_size,
                devices(run.latest.devices),
                run.latest.digest[:12],
                run.latest.rows.get("training"),
                run.latest.epochs,
                *([settings] if len(runs) > 1 else []),
                *(found["measures"].get(name) for name in measures),
                found["seconds"],
                found["rows_per_second"],
                goodput(run),
                found["dollars"],
            ]
        )
    text = (
        "Measures are those on the test rows; of a run that has not ended, those on the validation rows after its "
        "latest epoch. Ranks that are asleep take as long as GPUs of a given speed would, and learn nothing. Goodput "
        "is the share of the whole time in which rows were computed that count."
    )
    figure = Figure(key="runs", title="Runs", columns=columns, rows=rows, text=text)
    return Section(key="runs", title="What ran", figures=[_upright(figure) if len(rows) == 1 else figure])


def _upright(figure: Figure) -> Figure:
    """The table of a single run, a line for each of its columns."""
    columns = [Column(key="what", head="what"), Column(key="value", head="value")]
    pairs = [[column.head, value] for column, value in zip(figure.columns, figure.cells()[0], strict=True)]
    return replace(figure, title="The run", columns=columns, rows=pairs)
