"""Renders plots: vl-convert turns a Vega-Lite specification and rows into an SVG, without a browser or network.

Colours are names of the page's style sheet (`var(--c1)`, `currentColor`), so that one SVG fits light and dark pages,
and paper. A plot is as wide as a phone's screen, and wide pages show several plots in a row. Do not measure labels in
the page's font. This font differs between browsers, and labels would be cut off where it is wider than assumed.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import vl_convert

from common.display import printable
from experiments.report.tables import Row, Value

WIDTH, HEIGHT = 340, 250
_FONT = "Liberation Mono"
"""Font for measuring labels, because no common font is wider. The page's style sheet sets the font that is displayed.
"""
COLOURS = [f"var(--c{number})" for number in range(1, 7)]
"""Colours of categories. The page's style sheet defines them for each theme."""
DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [12, 3]]
"""Dash patterns of lines, in the order of COLOURS, so that categories differ not only in colour."""

_CONFIG: Mapping[str, Any] = {
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {
        "domainColor": "currentColor",
        "domainOpacity": 0.5,
        "tickColor": "currentColor",
        "tickOpacity": 0.5,
        "gridColor": "currentColor",
        "gridOpacity": 0.12,
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 6,
        "labelLimit": 160,
        "labelOverlap": "greedy",
        "labelSeparation": 4,
        "tickCount": 4,
    },
    # Long names of bars leave little width, and overlapping labels would be hidden.
    "axisXQuantitative": {"tickCount": {"expr": "max(2, floor(width / 70))"}, "format": ",~f"},
    "legend": {
        "orient": "bottom",
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "labelFontSize": 11,
        "labelLimit": 300,
        "symbolSize": 120,
        "layout": {"bottom": {"direction": "vertical", "anchor": "start", "margin": 4}},
        "title": None,
    },
    "range": {"category": COLOURS},
    "mark": {"color": COLOURS[0]},
    "text": {"color": "currentColor", "fill": "currentColor"},
    "rule": {"color": "currentColor"},
}


class DrawingError(Exception):
    """vl-convert rejected a plot."""


def svg(rows: Sequence[Row], spec: Mapping[str, Any], *, title: str, description: str, name: str) -> str:
    """Return the SVG element of a plot, from its specification and rows. The SVG fills the width of its container.

    `name` must be unique in the page and consist of lower-case letters, digits and `-`. Raises DrawingError if
    vl-convert rejects the plot.

    Names come from files and can contain any character. A character that XML does not allow would make vl-convert panic
    and abort the whole process. So unprintable characters are replaced.
    """
    whole = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": WIDTH,
        "height": HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "config": _CONFIG,
        "data": {"values": [_plain(row) for row in rows]},
        **spec,
    }
    try:
        raw: str = vl_convert.vegalite_to_svg(_printable(whole))
    except ValueError as error:
        raise DrawingError(str(error)) from error
    label = f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>'
    return _slim(raw, f'role="img" aria-labelledby="{name}-t {name}-d"', label)


def _printable(part: Any) -> Any:
    if isinstance(part, str):
        return printable(part)
    if isinstance(part, Mapping):
        return {key: _printable(each) for key, each in part.items()}
    return [_printable(each) for each in part] if isinstance(part, Sequence) else part


def _plain(row: Row) -> dict[str, Value]:
    """Return the fields of a row that a plot can use. Numbers are rounded to the digits that matter on a screen."""
    fields = {key: value for key, value in row.items() if value is None or isinstance(value, str | int | float)}
    return {key: float(f"{each:.4g}") if isinstance(each, float) else each for key, each in fields.items()}


_OPENING = re.compile(r"<svg\b[^>]*?viewBox=\"(?P<box>[^\"]*)\"[^>]*>")
_LONG = re.compile(r"(\d+\.\d\d)\d+")
_PLACES = re.compile(r' (?:d|transform)="[^"]*"')
_LONG_PLACE = re.compile(r"(\d+\.\d)\d+")
_MARK = re.compile(r'<path aria-label="([^"]*)"([^>]*)/>')
_NO_NAMES = re.compile(
    r' (?:xmlns(?::\w+)?|role|aria-[a-z]+|class|version|font-family|pointer-events)="[^"]*"'
    r'| (?:stroke-|fill-)?opacity="1"| stroke-width="1"| transform="translate\(0,0\)"'
)
_UNSEEN = re.compile(r'<path[^>]* display="none"/>|<path d="M0,0h[\d.]+v[\d.]+h-?[\d.]+Z"/>')


def _slim(raw: str, attributes: str, label: str) -> str:
    """Return the SVG without the markup that a page does not need: sizes, names, defaults, and digits without visible
    effect.

    Screen readers see one image. Vega's label of each mark becomes the mark's title, which browsers show at the
    pointer.
    """
    opening = _OPENING.search(raw)
    if opening is None:
        raise ValueError("vl-convert drew no SVG")
    titled = _MARK.sub(r"<path\2><title>\1</title></path>", raw[opening.end() :])
    slim = re.sub(r"<[^>]*>", lambda tag: _slim_tag(tag[0]), titled)
    return f'<svg viewBox="{opening["box"]}" {attributes}>{label}{_UNSEEN.sub("", slim)}'


def _slim_tag(tag: str) -> str:
    tag = _PLACES.sub(lambda places: _LONG_PLACE.sub(r"\1", places[0]), _NO_NAMES.sub("", tag))
    return _LONG.sub(r"\1", tag)
