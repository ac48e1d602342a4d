"""Draws the plots of a table as SVGs: vl-convert renders Vega-Lite specifications, without a browser or network.

Colours are names of the page's style sheet (`var(--c1)`, `currentColor`), so that one SVG fits light and dark pages,
and paper. A plot is as wide as a phone's screen, and wide pages show several plots in a row. Do not measure labels in
the page's font. This font differs between browsers, and labels would be cut off where it is wider than assumed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import count
from typing import Any

import vl_convert

from common.display import printable
from experiments.report.tables import Plot, Row, Table, Value

Spec = dict[str, Any]
WIDTH, HEIGHT = 340, 250
_FONT = "Liberation Mono"
"""Font for measuring labels, because no common font is wider. The page's style sheet sets the font that is displayed.
"""
_COLOURS = [f"var(--c{number})" for number in range(1, 7)]
"""Colours of categories. The page's style sheet defines them for each theme."""
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [12, 3]]
"""Dash patterns of lines, in the order of _COLOURS, so that categories differ not only in colour."""
_LEGEND_ROW, _MAX_NAMES, _MAX_POINTS = 15, 8, 120
"""Height of a legend line in pixels; maximum number of names that get different colours; maximum number of rows for
which lines also show points."""
_STROKES = {"symbolType": "stroke", "symbolStrokeWidth": 2}

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
        "gridOpacity": 0.1,
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
    "range": {"category": _COLOURS},
    "mark": {"color": _COLOURS[0]},
    "text": {"color": "currentColor", "fill": "currentColor"},
}


def drawn(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the title and the SVG element of each plot of a table."""
    number = count(1)
    for plot in table.plots:
        for title, part in _parts(plot, table):
            description = f"{table.head(plot.y)} and {table.head(plot.x)} as lines, a line for each {plot.by}."
            name = f"{table.key}-{next(number)}"
            yield title, _svg(part.rows, _spec(plot, part), title=title, description=description, name=name)


def _parts(plot: Plot, table: Table) -> Iterator[tuple[str, Table]]:
    """Yield the title and the rows of each drawing of a plot: one drawing, or one for each value of the column
    `plot.each`."""
    names = table.values(plot.each)
    if not names:
        yield plot.title, table
    for name in names:
        rows = [row for row in table.rows if row[plot.each] == name]
        yield plot.title if len(names) == 1 else f"{plot.title}, {name}", replace(table, rows=rows)


def _spec(plot: Plot, table: Table) -> Spec:
    names = table.values(plot.by)
    encodings = colour_encodings(plot.by, names) if 1 < len(names) <= _MAX_NAMES else {}
    height = height_of(names if encodings else [])
    line = [each for each in (plot.by, plot.style, "run") if each]
    styled: Spec = {"strokeWidth": {"value": 1.8}}
    if plot.style and len(styles := table.values(plot.style)) > 1:
        legend = {"legend": {"columns": 2, **_STROKES}}
        widths = {"scale": {"domain": styles, "range": [1.8, 4]}, **legend}
        pale = {"scale": {"domain": styles, "range": [1.0, 0.5]}, **legend}
        styled = {"strokeWidth": {**_names(plot.style), **widths}, "strokeOpacity": {**_names(plot.style), **pale}}
        height += 2 * _LEGEND_ROW
    # A line of one point is invisible, so its point is drawn. Short lines show all their points.
    most = _MAX_POINTS if len(table.rows) <= _MAX_POINTS else 1
    points: Spec = {
        "transform": [
            {"joinaggregate": [{"op": "count", "as": "points"}], "groupby": line},
            {"filter": f"datum.points <= {most}"},
        ],
        "mark": {"type": "point", "filled": True, "size": 20, "opacity": 1},
        "encoding": {key: encodings[key] for key in ("color",) if key in encodings},
    }
    lines: Spec = {
        "mark": {"type": "line", "strokeCap": "round"},
        "encoding": {"detail": [_names(each) for each in line], **encodings, **styled},
    }
    axes = {"x": _numbers(plot.x, table), "y": _numbers(plot.y, table)}
    return {"height": height, "encoding": axes, "layer": [lines, points]}


def _numbers(key: str, table: Table) -> Spec:
    """Return an axis for a column of numbers. If there are only a few whole numbers, each gets a label. Axes of shares
    start at 0."""
    values = table.values(key)
    is_share = any(column.key == key and column.form.endswith("%") for column in table.columns)
    most = max((each for each in values if isinstance(each, int | float)), default=0)
    axis: Spec = {"format": ".0%" if is_share else "~s" if most >= 10_000 else ",.6~f"}
    if values and all(isinstance(each, int) for each in values) and most <= 6 and len(values) <= 8:
        axis |= {"values": sorted(values), "format": "d"}
    scale = {"zero": is_share, "nice": True}
    return {"field": key, "type": "quantitative", "title": table.head(key), "scale": scale, "axis": axis}


def _names(field: str) -> Spec:
    """Return an axis for names, in the order of the rows."""
    return {"field": field, "type": "nominal", "title": None, "sort": None}


def colour_encodings(field: str, names: Sequence[str]) -> Spec:
    """Return the encodings that distinguish these names: colours and dashes."""
    legend = {"columns": _columns(names), **_STROKES}
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(names))]
    dashes = [_DASHES[(place + place // len(_COLOURS)) % len(_DASHES)] for place in range(len(names))]
    return {
        "color": {**_names(field), "legend": legend, "scale": {"domain": list(names), "range": colours}},
        "strokeDash": {**_names(field), "legend": legend, "scale": {"domain": list(names), "range": dashes}},
    }


def _columns(names: Sequence[str]) -> int:
    longest = max(map(len, names))
    return next(columns for columns, letters in ((3, 8), (2, 16), (1, longest)) if longest <= letters)


def height_of(names: Sequence[str]) -> int:
    """Return the height of a plot that has a legend with these names. The plot area is as high as without a legend."""
    return HEIGHT + _LEGEND_ROW * (-(-len(names) // _columns(names)) if len(names) > 1 else 0)


def _svg(rows: Sequence[Row], spec: Mapping[str, Any], *, title: str, description: str, name: str) -> str:
    """Return the SVG element of a plot, from its specification and rows. The SVG fills the width of its container.

    `name` must be unique in the page and consist of lower-case letters, digits and `-`.

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
    raw: str = vl_convert.vegalite_to_svg(_printable(whole))
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
_MARK = re.compile(r'<path aria-label="([^"]*)"([^>]*)/>')
_DIGITS = re.compile(r"(\d+\.\d)\d+")
_NAMES = re.compile(
    r' (?:xmlns(?::\w+)?|role|aria-[a-z]+|class|version|font-family|pointer-events)="[^"]*"'
    r'| (?:stroke-|fill-)?opacity="1"| stroke-width="1"| transform="translate\(0,0\)"'
)


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
    slim = re.sub(r"<[^>]*>", lambda tag: _DIGITS.sub(r"\1", _NAMES.sub("", tag[0])), titled)
    return f'<svg viewBox="{opening["box"]}" {attributes}>{label}{slim}'
