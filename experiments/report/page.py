"""Writes the report on runs: one HTML page with sections, which loads nothing from the network."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from common.display import plural, printable_lines
from experiments.report.plots import drawn
from experiments.report.sections import sections
from experiments.report.tables import Table
from experiments.table import Group, Row

_TITLE = "Shoal: "
_HEAD_BYTES = 2_000


def is_page(path: Path) -> bool:
    """Return whether a file is a page of any version."""
    with path.open("rb") as file:
        return f"<title>{_TITLE}".encode() in file.read(_HEAD_BYTES)


def make_page(groups: Sequence[Group], rows: Sequence[Row], warnings: Sequence[str], *, now: float) -> str:
    """Return the page on these runs. `rows` are the rows of the groups. `now` is in seconds since 1970."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_text("page.html")).render(
        title=f"{_TITLE}{groups[0].name if len(groups) == 1 else plural(len(groups), 'run')}",
        sections=sections(groups, rows),
        warnings=warnings,
        written=f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC",
        style=Markup(_text("page.css")),  # noqa: S704  our own file
        plots=_plots,
        plural=plural,
        quoted=partial(quote, safe=" ,:;/()"),
    )
    return printable_lines(page)


def _plots(table: Table) -> list[tuple[str, Markup]]:
    """Return the title and the SVG of each plot of a table."""
    return [(title, Markup(svg)) for title, svg in drawn(table)]  # noqa: S704  plots.py escapes its content


def _text(name: str) -> str:
    return files("experiments.report").joinpath(name).read_text("utf-8")
