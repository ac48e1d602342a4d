"""Turns the plots of a table into Vega-Lite specifications, and these into SVGs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from experiments.report.drawing import COLOURS, DASHES, HEIGHT, svg
from experiments.report.tables import Plot, Table, shortened

Spec = dict[str, Any]
_LEGEND_ROW, _MAX_NAMES, _MAX_POINTS = 15, 8, 120
"""Height of a legend line in pixels; maximum number of names that get different colours; maximum number of rows for
which lines also show points."""
_STROKES = {"symbolType": "stroke", "symbolStrokeWidth": 2}
_DASHED = {"strokeDash": [4, 4], "color": "currentColor", "opacity": 0.6, "aria": False}


def drawn(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the title and the SVG element of each plot of a table. Raises DrawingError if vl-convert rejects a plot."""
    number = count(1)
    for plot in table.plots:
        for title, part in _parts(plot, table):
            name = f"{table.key}-{next(number)}"
            yield title, svg(part.rows, _spec(plot, part), title=title, description=_description(plot, part), name=name)


def _parts(plot: Plot, table: Table) -> Iterator[tuple[str, Table]]:
    """Yield the title and the rows of each drawing of a plot: one drawing, or one for each value of the column
    `plot.each`."""
    names = table.values(plot.each)
    if not names:
        yield plot.title, table
    for name in names:
        rows = [row for row in table.rows if row[plot.each] == name]
        yield plot.title if len(names) == 1 else f"{plot.title}, {name}", replace(table, rows=rows)


def _description(plot: Plot, table: Table) -> str:
    mark = {"lines": "line", "bars": "bar", "points": "point"}[plot.kind]
    x = " and ".join(map(table.head, (plot.x,) if isinstance(plot.x, str) else plot.x))
    apart = f", a {mark} for each {table.head(plot.by)}" if plot.by else ""
    return f"{table.head(plot.y)} and {x} as {mark}s{apart}."


def _spec(plot: Plot, table: Table) -> Spec:
    if plot.kind == "bars":
        return _bars(plot, table)
    assert isinstance(plot.x, str)
    names = table.values(plot.by) if plot.by else []
    encodings = colour_encodings(plot.by, names, are_lines=plot.kind == "lines") if 1 < len(names) <= _MAX_NAMES else {}
    base: Spec = {
        "height": height_of(names if encodings else []),
        "encoding": {
            "x": number(plot.x, table, is_log=bool(plot.ideal)),
            "y": number(plot.y, table, is_log=bool(plot.ideal)),
        },
    }
    if plot.kind == "points":
        colour = {key: each for key, each in encodings.items() if key == "color"}
        layers = [{"mark": {"type": "point", "filled": True, "size": 70}, "encoding": colour}]
        if plot.ideal:
            base["transform"] = [{"filter": f"isValid(datum.{plot.ideal})"}]
            ideal = {**number(plot.ideal, table, is_log=True), "title": table.head(plot.y)}
            layers.insert(0, {"mark": {"type": "line", **_DASHED}, "encoding": {"y": ideal}})
        return {**base, "layer": layers}
    line = [each for each in (plot.by, plot.style, "run") if each]
    mark: Spec = {"type": "line", "strokeCap": "round"}
    styled: Spec = {"strokeWidth": {"value": 1.8}}
    if plot.style and len(styles := table.values(plot.style)) > 1:
        legend = {"legend": {"columns": 2, **_STROKES}}
        widths = {"scale": {"domain": styles, "range": [1.8, 4]}, **legend}
        pale = {"scale": {"domain": styles, "range": [1.0, 0.5]}, **legend}
        styled = {"strokeWidth": {**name(plot.style), **widths}, "strokeOpacity": {**name(plot.style), **pale}}
        base["height"] += 2 * _LEGEND_ROW
    # A line of one point is invisible, so its point is drawn. Short lines show all their points.
    most = _MAX_POINTS if len(table.rows) <= _MAX_POINTS else 1
    shown = [
        {"joinaggregate": [{"op": "count", "as": "points"}], "groupby": line},
        {"filter": f"datum.points <= {most}"},
    ]
    point: Spec = {"type": "point", "filled": True, "size": 20, "opacity": 1}
    lines: list[Spec] = [
        {"mark": mark, "encoding": {"detail": [name(each) for each in line], **encodings, **styled}},
        {
            "transform": shown,
            "mark": point,
            "encoding": {key: encodings[key] for key in ("color",) if key in encodings},
        },
    ]
    return {**base, "layer": lines}


def _bars(plot: Plot, table: Table) -> Spec:
    keys = (plot.x,) if isinstance(plot.x, str) else plot.x
    x = number(keys[0], table, zero=True)
    spec: Spec = {
        "height": {"step": 14 if len(keys) > 1 else 22},
        "autosize": {"type": "fit-x", "contains": "padding"},
        "encoding": {"x": x, "y": rows_of(plot.y, table.values(plot.y))},
        "mark": {"type": "bar"},
    }
    encoding = spec["encoding"]
    if len(keys) > 1:
        heads = [table.head(key) for key in keys]
        side = f"{json.dumps(heads)}[indexof({json.dumps(keys)}, datum.side)]"
        spec["transform"] = [{"fold": list(keys), "as": ["side", "number"]}, {"calculate": side, "as": "which"}]
        encoding["x"] = {**x, "field": "number", "title": None}
        encoding |= {"yOffset": name("which", order=heads), "color": colour_encodings("which", heads)["color"]}
    elif plot.ends and all(table.values(end) for end in plot.ends):
        low, high = plot.ends
        across = {"x": {**x, "field": low}, "x2": {"field": high}}
        rule = {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": across}
        layers = [{"mark": spec.pop("mark"), "encoding": {"x": encoding.pop("x")}}, rule]
        return {**spec, "layer": layers}
    return spec


def number(key: str, table: Table, *, zero: bool = False, is_log: bool = False) -> Spec:
    """Return an axis for a column of numbers. If there are only a few whole numbers, each gets a label. Axes of shares
    start at 0."""
    values = table.values(key)
    is_share = any(column.key == key and column.form.endswith("%") for column in table.columns)
    most = max((each for each in values if isinstance(each, int | float)), default=0)
    axis: Spec = {"format": ".0%" if is_share else "~s" if most >= 10_000 else ",.6~f"}
    if values and all(isinstance(each, int) for each in values) and (is_log or most <= 6) and len(values) <= 8:
        axis |= {"values": sorted(values), "format": "d"}
    scale: Spec = {"type": "log", "base": 2} if is_log else {"zero": zero or is_share, "nice": True}
    return {"field": key, "type": "quantitative", "title": table.head(key), "scale": scale, "axis": axis}


def name(field: str, *, order: Sequence[str] | None = None) -> Spec:
    """Return an axis for names, in the order of the rows or in `order`."""
    return {"field": field, "type": "nominal", "title": None, "sort": None if order is None else list(order)}


def rows_of(field: str, names: Sequence[str]) -> Spec:
    """Return a vertical axis for bars with these names. Long names are shown without their middle."""
    short = {str(each): shortened(str(each), 22) for each in names}
    label = f"{json.dumps(list(short.values()))}[indexof({json.dumps(list(short))}, datum.label)]"
    axis = {"title": None, "labelLimit": 0, "labelOverlap": False, "labelExpr": label}
    return {**name(field, order=names), "axis": axis}


def colour_encodings(field: str, names: Sequence[str], *, are_lines: bool = False) -> Spec:
    """Return the encodings that distinguish these names: colours, and dashes for lines."""
    legend = {"columns": _columns(names), **(_STROKES if are_lines else {})}
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(names))]
    dashes = [DASHES[(place + place // len(COLOURS)) % len(DASHES)] for place in range(len(names))]
    return {
        "color": {**name(field), "legend": legend, "scale": {"domain": list(names), "range": colours}},
        "strokeDash": {**name(field), "legend": legend, "scale": {"domain": list(names), "range": dashes}},
    }


def _columns(names: Sequence[str]) -> int:
    longest = max(map(len, names))
    return next(columns for columns, letters in ((3, 8), (2, 16), (1, longest)) if longest <= letters)


def height_of(names: Sequence[str]) -> int:
    """Return the height of a plot that has a legend with these names. The plot area is as high as without a legend."""
    return HEIGHT + _LEGEND_ROW * (-(-len(names) // _columns(names)) if len(names) > 1 else 0)
