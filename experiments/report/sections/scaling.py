"""Plots of scaling, which an experiment and runs beside each other share."""

from collections.abc import Sequence

from experiments.report.figures import Plot
from experiments.report.specs import Spec, coloured, height_of, name, number

IDEAL = "The dashed line is linear scaling with the number of {0}."
_DASHED = {"strokeDash": [4, 4], "color": "currentColor", "opacity": 0.6, "aria": False}


def scaling_plots(counts: Sequence[int], *, of: str, sides: Sequence[str] = (), has_spread: bool = False) -> list[Plot]:
    """Speed-up and efficiency by the `counts` of ranks or cores (`of`), a line for each of the `sides`.

    The rows have `ranks`, `ideal`, `speed_up`, `efficiency`; with sides `side`, and with a spread the `least` and the
    `most` speed-up of the runs.
    """
    x = number("ranks", of, log=True, axis={"values": list(counts)})
    up = number("speed_up", "speed-up", log=True)
    ideal: Spec = {"mark": {"type": "line", **_DASHED}, "encoding": {"y": {**up, "field": "ideal"}}}
    whole: Spec = {"mark": {"type": "rule", **_DASHED}, "encoding": {"x": None, "y": {"datum": 1}}}
    ends = {"y": {**up, "field": "least"}, "y2": {"field": "most"}}
    spread = [{"mark": {"type": "rule", "strokeWidth": 2, "aria": False}, "encoding": ends}] if has_spread else []
    share = number("efficiency", "efficiency", zero=True, axis={"format": ".0%"})
    shared: Spec = {"height": height_of(sides), "encoding": {"x": x}}
    return [
        Plot(
            title=f"Speed-up by {of}",
            description=f"The speed-up against the {of}; the dashed line is the ideal."
            + (" A line goes from the slowest run to the fastest." if has_spread else ""),
            spec={**shared, "layer": [ideal, *spread, _points(up, sides)]},
        ),
        Plot(
            title=f"Efficiency by {of}",
            description=f"The speed-up divided by the {of}; the dashed line at 100% is the ideal.",
            spec={**shared, "layer": [whole, _points(share, sides)]},
        ),
    ]


def _points(y: Spec, sides: Sequence[str]) -> Spec:
    detail = {"detail": name("side")} if sides else {}
    return {
        "mark": {"type": "line", "point": {"filled": True, "size": 50}},
        "encoding": {"y": y, **detail, **coloured("side", sides)},
    }
