"""Pieces of Vega-Lite that several plots share."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.report.drawing import COLOURS, DASHES

Spec = dict[str, Any]
ROW: Mapping[str, str] = {"field": "row", "type": "nominal"}
"""As the `description` of a mark: what is said of it is its row of the table (page.js)."""


def number(field: str, title: str, *, zero: bool = False, log: bool = False, **more: Any) -> Spec:
    """An axis of numbers; `log`: to the base 2."""
    scale: Spec = {"type": "log", "base": 2} if log else {"zero": zero, "nice": True}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def name(field: str, title: str | None = None, *, order: Sequence[str] | None = None, **more: Any) -> Spec:
    """An axis of names, in the order of the rows or in this one."""
    sort = list(order) if order is not None else None
    return {"field": field, "type": "nominal", "title": title, "sort": sort, **more}


def coloured(field: str, names: Sequence[str]) -> Spec:
    """The encodings that tell these names apart: by colour, and lines by their dashes too. None for a single one."""
    if len(names) < 2:
        return {}
    many = -(-len(names) // len(COLOURS))
    domain = list(names)
    return {
        "color": {**name(field), "scale": {"domain": domain, "range": (COLOURS * many)[: len(names)]}},
        "strokeDash": {**name(field), "scale": {"domain": domain, "range": (DASHES * many)[: len(names)]}},
    }


def lines(x: Spec, y: Spec, names: Sequence[str], *, by: str) -> Spec:
    """A line for each name, with a point at each row that is seen when it is pointed at."""
    colours = coloured(by, names)
    points = {key: value for key, value in colours.items() if key == "color"}
    return {
        "encoding": {"x": x, "y": y, "detail": name(by)},
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 1.8, "aria": False}, "encoding": colours},
            {
                "mark": {"type": "point", "shape": "square", "filled": True, "size": 60, "opacity": 0},
                "encoding": {**points, "description": ROW},
            },
        ],
    }
