"""`shoal runs`: compares training runs by settings, measures, time and cost."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.figures import dollars
from bootstrap.cli.output import Result, Rows, Table
from common.display import join_lines
from common.errors import UsageError

_SETTINGS_LETTERS = 80


@command(
    help="List training runs with the settings in which they differ, their scores on the test rows (for "
    "unfinished runs, on the validation rows), the training time, and the cost of their nodes. DIR is the "
    "folder of a run, or a folder that contains several runs.",
    epilog="Example: shoal runs results --sort accuracy",
)
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@option("--sort", metavar="COLUMN", help="column to sort by, best first (default: order of the folders)")
def run(*, folders: tuple[Path, ...], sort: str | None) -> Result:
    from common.errors import ExperimentError
    from experiments.records import comparing, finding, runs

    found, problems = runs.read_all(runs.read_run, finding.find_runs(folders))
    if not found:
        raise ExperimentError(problems[0])
    listed = comparing.table_of(found)
    measures = comparing.common_measures(found)
    if sort is not None:
        own = {name for each in found for name in each.measures} - {"majority"}
        known = {"seconds", "dollars", "rows_per_second", "loss", *own}
        measures += [sort] if sort in own - {*measures, "loss"} else []
        if sort not in known:
            raise UsageError(f"--sort is {sort}, but must be one of: {', '.join(sorted(known))}")
        listed.sort(key=lambda each: _rank(vars(each), sort))
    columns: Rows = {
        "run": "{folder}",
        "state": "{state}",
        "settings that differ": lambda each: _shortened(comparing.settings_text(each["settings"])),
        **{measure: partial(_measured, measure=measure) for measure in measures},
        "time": "{seconds:duration}",
        "rows/s": "{rows_per_second:,.0f}",
        "cost": lambda each: "-" if each["dollars"] is None else dollars(each["dollars"]),
    }
    warnings = [*comparing.warnings(found), *(f"left out: {each}" for each in problems)]
    return Result(
        {"runs": [vars(each) for each in listed], "warnings": warnings}, [Table("runs", columns), join_lines(warnings)]
    )


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


def _rank(figures: dict[str, Any], column: str) -> tuple[bool, float]:
    """Return the sort key: best first, runs without a value last. Lower is better for losses, seconds and dollars."""
    value = figures["measures"].get(column, figures.get(column))
    if value is None:
        return True, 0.0
    return False, value if column.endswith("loss") or column in ("seconds", "dollars") else -value
