"""Writes the page: sections to one HTML file that asks no network for anything."""

from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from common.display import plural, printable_lines
from experiments.report.drawing import DrawingError
from experiments.report.plots import drawn
from experiments.report.tables import Section, Table


def page(
    title: str, summary: Sequence[tuple[str, str]], found: Sequence[Section], *, warnings: Sequence[str], written: str
) -> str:
    """The page as HTML.

    `summary`: names and values that are shown large. `written`: when the page is made.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_text("page.html"))
    page = template.render(
        title=title,
        summary=summary,
        sections=found,
        warnings=warnings,
        written=written,
        style=Markup(_text("page.css")),  # noqa: S704  our own file
        plots=_plots,
        plural=plural,
        quoted=partial(quote, safe=" ,:;/()"),
    )
    return printable_lines(page)


def _plots(table: Table) -> list[tuple[str, Markup]]:
    """The title and the SVG of each of its plots."""
    try:
        return [(title, Markup(svg)) for title, svg in drawn(table)]  # noqa: S704  drawing.py escapes what is in it
    except DrawingError:
        return [(table.title, Markup("<p>This plot could not be drawn; its numbers are in the table.</p>"))]


def _text(name: str) -> str:
    return files("experiments.report").joinpath(name).read_text("utf-8")
