"""The plots of a report, one by one, as notebooks show them."""

import re
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from experiments.report.plots import drawn
from experiments.report.sections import sections
from experiments.report.subjects import find_subjects


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot of runs or datasets, which a notebook shows as its cell's value."""

    title: str
    section: str
    """The part of the report that it is from."""
    rows: list[dict[str, str | int | float | None]]
    """What is drawn, a dictionary a row: also for a drawing of one's own."""
    svg: str
    """An SVG element. Its colours are the report's variables of CSS, `--c1` to `--c6`, which `_repr_html_` defines."""

    def _repr_html_(self) -> str:
        page = files("experiments.report").joinpath("page.css").read_text("utf-8")
        colours = " ".join(re.findall(r"--c\d: #[0-9a-f]+;", page)[:6])
        return (
            f'<figure style="max-width: 420px; margin: 0; {colours}"><figcaption>{escape(self.title)}</figcaption>'
            f"{self.svg}</figure>"
        )


def plots(*folders: Path | str) -> list[Plot]:
    """The plots that `shoal report` makes of these folders.

    Args:
        folders: Output folders of trainings, of preprocessings (with their counts) and of experiments.

    Returns:
        The plots, in the order of the report.

    Raises:
        ShoalError: A folder has neither a run nor a dataset, or one that cannot be read.
    """
    return [
        Plot(title=title, section=section.title, rows=[dict(row) for row in table.rows], svg=svg)
        for section in sections(find_subjects([Path(each) for each in folders]))
        for table in section.tables
        for title, svg in drawn(table)
    ]
