"""Writes the page: sections to one HTML file that asks no network for anything."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from itertools import chain, count
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from common.display import plural, printable_lines
from experiments.report.drawing import DrawingError, svg
from experiments.report.figures import Figure, Section
from experiments.report.sections.comparison import comparison
from experiments.report.sections.data import data
from experiments.report.sections.experiment import experiment
from experiments.report.sections.learning import learning
from experiments.report.sections.overview import overview
from experiments.report.sections.ranks import ranks
from experiments.report.sections.time_and_money import time_and_money
from experiments.report.subjects import Found


def sections(content: Found) -> list[Section]:
    """What there is to show, in the order of the page; sections without figures are left out."""
    found = [experiment(each) for each in content.experiments]
    if content.subjects:
        found += [each(content.subjects) for each in (overview, time_and_money, comparison, learning, ranks)]
    if content.data:
        found.append(data(content.data, content.subjects))
    return _apart([each for each in found if each.figures])


def _apart(found: Sequence[Section]) -> list[Section]:
    """The sections, and their figures, each with a key of its own, and sections with titles of their own: names of runs
    and of experiments may be alike."""
    figures = iter(_distinct([figure.key for each in found for figure in each.figures]))
    return [
        replace(each, key=key, title=title, figures=[replace(figure, key=next(figures)) for figure in each.figures])
        for each, key, title in zip(
            found, _distinct([each.key for each in found]), _distinct([each.title for each in found]), strict=True
        )
    ]


def _distinct(keys: Sequence[str]) -> list[str]:
    """The keys, with a number after each that was there before."""
    found: list[str] = []
    for key in keys:
        numbered = (f"{key}-{number}" for number in count(2))
        found.append(next(each for each in chain([key], numbered) if each not in found))
    return found


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
        script=Markup(_text("page.js")),  # noqa: S704  our own file
        svg=_drawing,
        numbers=_numbers,
        plural=plural,
        quoted=partial(quote, safe=" ,:;/()"),
    )
    return printable_lines(page)


def _drawing(figure: Figure, place: int) -> Markup:
    try:
        return Markup(svg(figure.plots[place], figure))  # noqa: S704  drawing.py escapes what is in it
    except DrawingError:
        return Markup("<p>This plot could not be drawn; its numbers are in the table.</p>")


def _numbers(figure: Figure) -> list[bool]:
    """Which columns have numbers: they are set to the right."""
    return [any(isinstance(row[place], int | float) for row in figure.rows) for place in range(len(figure.columns))]


def _text(name: str) -> str:
    return files("experiments.report").joinpath(name).read_text("utf-8")
