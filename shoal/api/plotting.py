"""The plots of a report as objects for notebooks."""

import re
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from experiments.records import read_runs
from experiments.report.plots import drawn
from experiments.report.sections import sections
from experiments.table import group_runs, make_rows


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Plot of runs. A notebook shows the plot if it is the value of a cell."""

    title: str
    section: str
    """Section of the report that contains the plot."""
    rows: list[dict[str, str | int | float | None]]
    """Plotted data, one dictionary per row, for example for your own plots."""
    svg: str
    """SVG element. Its colours are the report's CSS variables `--c1` to `--c6`, which `_repr_html_` defines."""

    def _repr_html_(self) -> str:
        page = files("experiments.report").joinpath("page.css").read_text("utf-8")
        colours = " ".join(re.findall(r"--c\d: #[0-9a-f]+;", page)[:6])
        return (
            f'<figure style="max-width: 420px; margin: 0; {colours}"><figcaption>{escape(self.title)}</figcaption>'
            f"{self.svg}</figure>"
        )


def plots(*folders: Path | str) -> list[Plot]:
    """Return the plots of `shoal report` for these folders.

    Args:
        folders: Output folders of training runs, or folders that contain several runs.

    Returns:
        The plots, in the same order as in the report.

    Raises:
        ShoalError: A folder contains no run, or no run is readable.
    """
    groups = group_runs(read_runs([Path(each) for each in folders])[0])
    return [
        Plot(title=title, section=section.title, rows=[dict(row) for row in table.rows], svg=svg)
        for section in sections(groups, make_rows(groups))
        for table in section.tables
        for title, svg in drawn(table)
    ]
