"""Writes the report on folders: one HTML page with sections, which loads nothing from the network."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from common.display import plural, printable_lines
from experiments.records.comparing import RunRow, common_measures, table_of, warnings
from experiments.report.drawing import DrawingError
from experiments.report.plots import drawn
from experiments.report.rows import INTERVAL, about_run, interval_text
from experiments.report.sections import sections
from experiments.report.subjects import ReportContent, find_subjects
from experiments.report.tables import Table, time_unit

_TITLE = "Shoal: "
_HEAD_BYTES = 2_000


class Report(NamedTuple):
    """HTML page, and the figures and warnings that the command prints in the terminal."""

    page: str
    summary: Mapping[str, str]
    """Headline figures as text, by name."""
    runs: Sequence[RunRow]
    warnings: Sequence[str]


def is_report(path: Path) -> bool:
    """Return whether a file is a report of any version."""
    with path.open("rb") as file:
        return f"<title>{_TITLE}".encode() in file.read(_HEAD_BYTES)


def report(folders: Sequence[Path], *, now: float) -> Report:
    """Return the report on the runs and datasets in these folders. `now` is in seconds since 1970.

    Raises ExperimentError if a folder contains no run and no dataset, or if nothing is readable.
    """
    content = find_subjects(folders)
    runs = [each.run for each in content.subjects]
    table = table_of(runs, [each.name for each in content.subjects])
    figures = _headlines(content, table)
    warned = [*warnings(runs), *(f"left out: {each}" for each in content.problems)]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_text("page.html")).render(
        title=f"{_TITLE}{_title(content)}",
        about=about_run(content),
        summary=list(figures.items()),
        sections=sections(content),
        warnings=warned,
        written=f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC",
        style=Markup(_text("page.css")),  # noqa: S704  our own file
        plots=_plots,
        plural=plural,
        quoted=partial(quote, safe=" ,:;/()"),
    )
    return Report(printable_lines(page), figures, table, warned)


def _plots(table: Table) -> list[tuple[str, Markup]]:
    """Return the title and the SVG of each plot of a table. If vl-convert rejects a plot, return a sentence instead."""
    try:
        return [(title, Markup(svg)) for title, svg in drawn(table)]  # noqa: S704  drawing.py escapes its content
    except DrawingError:
        return [(table.title, Markup("<p>This plot could not be drawn; its numbers are in the table.</p>"))]


def _text(name: str) -> str:
    return files("experiments.report").joinpath(name).read_text("utf-8")


def _title(content: ReportContent) -> str:
    if content.experiments:
        return ", ".join(each.kept.name for each in content.experiments)
    if len(content.subjects) == 1:
        return content.subjects[0].name
    return f"{len(content.subjects)} runs" if content.subjects else "data"


def _headlines(content: ReportContent, table: Sequence[RunRow]) -> dict[str, str]:
    runs = [each.run for each in content.subjects]
    if not runs and content.experiments:
        arms = [arm for each in content.experiments for arm in each.arms]
        return {"arms": f"{len(arms)}", "finished runs": f"{sum(arm.finished for arm in arms)}"}
    if not runs:
        return {"datasets": str(len(content.data)), "texts": f"{sum(each.counts.texts for each in content.data):,}"}
    dollars = [row.dollars for row in table if row.dollars is not None]
    seconds = sum(row.seconds for row in table)
    unit_seconds, unit = time_unit(seconds)
    found = {"runs": f"{len(runs)}"} if len(runs) > 1 else {"state": runs[0].state}
    found["training" if len(runs) == 1 else "training, all runs"] = f"{seconds / unit_seconds:,.1f} {unit}"
    for measure in common_measures(runs)[:3]:
        each = [run.measures[measure] for run in runs if measure in run.measures]
        found[measure.replace("_", " ")] = _between(min(each), max(each), ".4f")
        if measure == "accuracy" and len(runs) == 1 and (interval := interval_text(runs[0])):
            found[INTERVAL] = interval
    if dollars:
        name = "cost" if len(dollars) == len(runs) else f"cost of {plural(len(dollars), 'run')}"
        found[name] = f"${sum(dollars):,.2f}"
    return found


def _between(least: float, most: float, form: str) -> str:
    low, high = format(least, form), format(most, form)
    return low if low == high else f"{low} to {high}"
