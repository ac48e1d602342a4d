"""`shoal report`: compares training runs by settings, measures, time and cost, as a table and as an HTML page."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.display import join_lines, size
from common.errors import ShoalError, UsageError
from shoal.cli.command import command, option
from shoal.cli.figures import dollars
from shoal.cli.output import Part, Result, Rows, Table

if TYPE_CHECKING:
    from experiments.table import Group, Row

_SETTINGS_LETTERS = 80
_SORTED = ("seconds", "dollars", "rows_per_second", "loss")
"""Columns to sort by, in addition to the measures."""


@command(
    help="List training runs with the settings in which they differ, their scores on the test rows (for unfinished "
    "runs, on the validation rows), the training time, and the cost of their nodes. DIR is the --output of `shoal "
    "train` or `shoal experiment`, or a folder that contains several runs. Runs in folders with numbers as names, such "
    "as small/1 and small/2, are repeats, and have one row. --output writes an HTML page with the table, learning "
    "curves, the confusion matrix and the surest wrong predictions of classifiers, and the work of each rank. Each "
    "plot comes with its numbers as a table and as CSV. The page needs no network.",
    epilog="""\
\b
Examples:
  shoal report results --sort accuracy
  shoal report results/lstm results/fasttext --output report.html
""",
)
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@option("--sort", metavar="COLUMN", help="column to sort by, best first (default: order of the folders)")
@option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="folder of the run, or of the repeats, with which the others are compared: adds speed-up and efficiency",
)
@option("--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html", help="file for the page")
def run(*, folders: tuple[Path, ...], sort: str | None, baseline: Path | None, output: Path | None) -> Result:
    return report_result(folders, sort=sort, baseline=baseline, output=output)


def report_result(
    folders: Sequence[Path], *, sort: str | None = None, baseline: Path | None = None, output: Path | None = None
) -> Result:
    """Return the table of the runs in these folders, and write the page if `output` is given.

    Raises ExperimentError if no run is readable, UsageError for an unknown column, and ShoalError if writing `output`
    fails.
    """
    from experiments import table
    from experiments.records import read_runs

    runs, problems = read_runs(folders)
    groups = table.group_runs(runs)
    rows = table.make_rows(groups, baseline)
    measures = table.common_measures(rows)
    warnings = [*table.warnings(runs), *(f"left out: {each}" for each in problems)]
    if output is not None:
        _write_page(output, groups, rows, warnings)
    if sort is not None:
        own = {name for row in rows for name in row.measures} - {"majority"}
        if sort not in own.union(_SORTED):
            raise UsageError(f"--sort is {sort}, but must be one of: {', '.join(sorted(own.union(_SORTED)))}")
        measures += [sort] if sort in own - {*measures, "loss"} else []
        rows.sort(key=lambda row: _rank(row, sort))
    content = {"runs": [vars(row) for row in rows], "warnings": warnings, "page": output and str(output)}
    parts: list[Part] = [Table("runs", _columns(rows, measures)), join_lines(warnings)]
    if output is not None:
        parts.append([("page", f"{output}, {size(output.stat().st_size)}")])
    return Result(content, parts)


def _columns(rows: "Sequence[Row]", measures: Sequence[str]) -> Rows:
    from experiments.table import settings_text

    columns: Rows = {
        "run": "{folder}",
        "state": "{state}",
        "settings that differ": lambda row: _shortened(settings_text(row["settings"])),
        **{measure: partial(_measured, measure=measure) for measure in measures},
        "time": "{seconds:duration}",
        "least": "{least:duration}",
        "most": "{most:duration}",
        "rows/s": "{rows_per_second:,.0f}",
        "speed-up": "{speed_up:.2f}",
        "efficiency": "{efficiency:percent}",
        "cost": lambda row: "-" if row["dollars"] is None else dollars(row["dollars"]),
    }
    optional = {"least": "least", "most": "most", "speed-up": "speed_up", "efficiency": "efficiency"}
    empty = {head for head, field in optional.items() if all(getattr(row, field) is None for row in rows)}
    return {head: template for head, template in columns.items() if head not in empty}


def _measured(figures: Mapping[str, Any], *, measure: str) -> str | None:
    """Return a measure as text. Templates cannot name measures, because a measure's name can have any character."""
    value = figures["measures"].get(measure)
    return None if value is None else f"{value:.4f}"


def _shortened(text: str) -> str:
    """Return the settings, shortened to fit into a table; --json shows all settings."""
    if len(text) <= _SETTINGS_LETTERS:
        return text
    kept = text[:_SETTINGS_LETTERS].rpartition(", ")[0] or text[:_SETTINGS_LETTERS]
    return f"{kept}, ... (--json shows all)"


def _rank(row: "Row", column: str) -> tuple[bool, float]:
    """Return the sort key: best first, runs without a value last. Lower is better for losses, seconds and dollars."""
    value = row.measures.get(column) if column in row.measures else getattr(row, column, None)
    if value is None:
        return True, 0.0
    return False, value if column.endswith("loss") or column in ("seconds", "dollars") else -value


def _write_page(output: Path, groups: "Sequence[Group]", rows: "Sequence[Row]", warnings: Sequence[str]) -> None:
    from common.files import write_whole
    from experiments.report.page import is_page, make_page

    if output.exists() and not is_page(output):
        raise ShoalError(f"{output} exists and is not a report; choose another --output, or remove that file")
    page = make_page(groups, rows, warnings, now=time.time())
    try:
        write_whole(output, page.encode())
    except OSError as error:
        raise ShoalError(f"cannot write {output}: {error.strerror}; choose another --output") from error
