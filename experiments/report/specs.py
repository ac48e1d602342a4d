"""Pieces of Vega-Lite that several plots share."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.report.drawing import COLOURS, DASHES, HEIGHT
from experiments.report.figures import Value, shortened

Spec = dict[str, Any]
ROW: Mapping[str, str] = {"field": "row", "type": "nominal"}
"""As the `description` of a mark: what is said of it is its row of the table (page.js)."""
SHORT: Mapping[str, str] = {"labelExpr": "format(datum.value, '~s')"}
"""An axis of large numbers, such as 0, 500, 1.5k."""
SHARES: Mapping[str, Any] = {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1]}
"""An axis of shares of a whole, with as many labels as have a place in a small plot."""
TRAINING, VALIDATION = "training", "validation"
"""The rows of which a loss is."""
_LEGEND_ROW, _LETTERS_OF_AXIS = 15, 36
_MOST_VALUES = 6
"""Whole numbers that are all named at an axis; of more Vega names round ones."""


def number(field: str, title: str, *, zero: bool = False, log: bool = False, **more: Any) -> Spec:
    """An axis of numbers; `log`: to the base 2."""
    scale: Spec = {"type": "log", "base": 2} if log else {"zero": zero, "nice": True}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def measured(field: str, title: str) -> Spec:
    """An axis of a loss or a measure, which may have the same value everywhere: Vega by itself would call that 0."""
    return number(field, title, axis={"format": ".6~g"})


def name(field: str, title: str | None = None, *, order: Sequence[str] | None = None, **more: Any) -> Spec:
    """An axis of names, in the order of the rows or in this one."""
    sort = list(order) if order is not None else None
    return {"field": field, "type": "nominal", "title": title, "sort": sort, **more}


def rows_of(field: str, names: Sequence[str], title: str | None = None, *, letters: int = 22) -> Spec:
    """An axis of these names down the side of bars; those of more letters are shown without their middle."""
    return name(field, title, order=names, axis={"title": title, **_labels(names, letters)})


def columns_of(field: str, title: str, names: Sequence[str]) -> Spec:
    """An axis of these names below columns; they stand upright where they have no place beside each other."""
    axis = {"labelAngle": -90 if are_upright(names) else 0, **_labels(names, 14)}
    return name(field, title, order=names, axis=axis)


def _labels(names: Sequence[str], letters: int) -> Spec:
    short = {each: shortened(each, letters) for each in names}
    place = f"indexof({json.dumps(list(short))}, datum.label)"
    label = f"{json.dumps(list(short.values()))}[{place}]"
    return {"labelLimit": 0, "labelOverlap": False, "labelExpr": label}


def are_upright(names: Sequence[str]) -> bool:
    """Whether names below columns stand upright; a plot needs some more height for them."""
    return len(names) * (1 + max(map(len, names), default=0)) > _LETTERS_OF_AXIS


def bars(step: int = 22) -> Spec:
    """The height of a plot of `rows_of` names: so many pixels for each; a legend comes below."""
    return {"height": {"step": step}, "autosize": {"type": "fit-x", "contains": "padding"}}


def counted(field: str, title: str, most: int) -> Spec:
    """An axis of whole numbers from 1 to `most`."""
    values = {"values": list(range(1, most + 1))} if most <= _MOST_VALUES else {}
    return number(field, title, axis={"format": "d", **values})


def coloured(field: str, names: Sequence[str]) -> Spec:
    """The encodings that tell these names apart: by colour, and lines by their dashes too. None for a single one."""
    if len(names) < 2:
        return {}
    legend = {"columns": _columns(names)}
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
    """The height of a plot with a legend of these names, so that it is as high as one without."""
    return HEIGHT + _LEGEND_ROW * (-(-len(names) // _columns(names)) if len(names) > 1 else 0)


def lines(x: Spec, y: Spec, names: Sequence[str], *, by: str) -> Spec:
    """A line for each name, with a point at each row that is seen when it is pointed at."""
    colours = coloured(by, names)
    points = {key: value for key, value in colours.items() if key == "color"}
    return {
        "height": height_of(names),
        "encoding": {"x": x, "y": y, "detail": name(by)},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.8, "aria": False}, "encoding": colours},
            {
                "mark": {"type": "point", "shape": "square", "filled": True, "size": 60, "opacity": 0},
                "encoding": {**points, "description": ROW},
            },
        ],
    }


def both_losses(curves: Spec, rows: Sequence[Sequence[Value]]) -> Spec:
    """The `lines` of a loss, by `of`: of training rows, and broad ones of validation rows, where the rows have some."""
    if not any(VALIDATION in row for row in rows):
        return curves
    training, points = curves["layer"]
    width = {"scale": {"domain": [TRAINING, VALIDATION], "range": [1.8, 4]}, "legend": {"columns": 2}}
    colour = {key: each for key, each in training["encoding"].items() if key == "color"}
    validation = {
        "mark": {"type": "line", "strokeCap": "round", "strokeOpacity": 0.5, "aria": False},
        "encoding": {**colour, "strokeWidth": {**name("of"), **width}},
    }
    return {
        "height": curves["height"] + 2 * _LEGEND_ROW,
        "encoding": {**curves["encoding"], "detail": [curves["encoding"]["detail"], name("of")]},
        "layer": [
            {**layer, "transform": [{"filter": f"datum.of == '{of}'"}]}
            for layer, of in ((training, TRAINING), (validation, VALIDATION))
        ]
        + [points],
    }
