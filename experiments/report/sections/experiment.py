"""What an experiment was for and what it found: its arms, beside each other and beside their baseline."""

from collections.abc import Mapping, Sequence

from experiments.report.figures import Column, Figure, Plot, Section, Value, key_of, time_unit
from experiments.report.specs import Spec, bars, coloured, name, number, rows_of
from experiments.results import ArmResult, ExperimentResult

_OWN, _TARGET = "by time", "by time to the target"


def experiment(found: ExperimentResult, *, one: bool) -> Section:
    """The section of an experiment; `one`: whether it is the only one of the page."""
    figures = [_arms(found), _times(found), *_speed_ups(found), *_bounds(found)]
    target = f" Its target is {found.target}." if found.target else ""
    baseline = f" Speed-ups are to {' or '.join(found.baseline)}." if found.baseline else ""
    runs = f" Each arm runs {found.repeats} times, in turns." if found.repeats > 1 else ""
    return Section(
        key="experiment" if one else key_of("experiment", found.name),
        title=f"The experiment {found.name}",
        figures=[each for each in figures if each is not None],
        text=f"{found.about.rstrip('.')}.{target}{baseline}{runs}",
    )


def _arms(found: ExperimentResult) -> Figure:
    measures = list(dict.fromkeys(measure for arm in found.arms for measure in arm.measures))
    columns = [
        Column(key="arm", head="arm"),
        Column(key="place", head="on"),
        Column(key="ranks", head="ranks" if found.kind == "training" else "cores"),
        Column(key="runs", head="runs"),
        Column(key="seconds", head="time, s", form=",.1f"),
        Column(key="rate", head="rows/s" if found.kind == "training" else "bytes/s", form=",.0f"),
        Column(key="target", head="to the target, s", form=",.1f"),
        Column(key="speed_up", head="speed-up", form=".2f"),
        Column(key="efficiency", head="efficiency", form=".0%"),
        Column(key="target_speed_up", head="speed-up to the target", form=".2f"),
        Column(key="target_efficiency", head="efficiency to the target", form=".0%"),
        Column(key="of_bound", head="share of own rates", form=".0%"),
        *(Column(key=f"measure_{place}", head=each, form=".4f") for place, each in enumerate(measures)),
        Column(key="dollars", head="a run, $", form=",.2f"),
        Column(key="remark", head="remark"),
    ]
    rows: list[list[Value]] = [
        [
            arm.name,
            arm.place or "this machine",
            arm.ranks,
            arm.finished,
            arm.seconds and arm.seconds.median,
            arm.rate and arm.rate.median,
            arm.to_target and arm.to_target.median,
            arm.speed_up,
            arm.efficiency,
            arm.target_speed_up,
            arm.target_efficiency,
            arm.of_bound,
            *(arm.measures.get(measure) for measure in measures),
            arm.dollars,
            arm.remark,
        ]
        for arm in found.arms
    ]
    empty = [place for place in range(len(columns)) if all(row[place] in (None, "") for row in rows)]
    kept = [place for place in range(len(columns)) if place not in empty]
    return Figure(
        key="arms",
        title="Arms",
        columns=[columns[place] for place in kept],
        rows=[[row[place] for place in kept] for row in rows],
        text="Times and rates are medians of the finished runs, of training without evaluation.",
    )


def _times(found: ExperimentResult) -> Figure | None:
    timed = [arm for arm in found.arms if arm.seconds]
    if not timed:
        return None
    seconds, unit = time_unit(max(arm.seconds.most for arm in timed if arm.seconds))
    rows: list[list[Value]] = [
        [arm.name, side, *(each / seconds for each in spread)]
        for arm in timed
        for side, spread in ((_OWN, arm.seconds), (_TARGET, arm.to_target))
        if spread
    ]
    sides = list(dict.fromkeys(str(row[1]) for row in rows))
    spec: Spec = {
        **bars(20),
        "encoding": {
            "y": rows_of("arm", order=[arm.name for arm in timed]),
            **({"yOffset": name("side", order=sides)} if len(sides) > 1 else {}),
        },
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "x": number("median", f"time, {unit}", zero=True),
                    **_colours(sides),
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": {"x": number("least", f"time, {unit}", zero=True), "x2": {"field": "most"}},
            },
        ],
    }
    columns = [
        Column(key="arm", head="arm"),
        Column(key="side", head="what"),
        *(Column(key=key, head=f"{key}, {unit}", form=",.2f") for key in ("median", "least", "most")),
    ]
    plot = Plot(
        title="Time of the arms",
        description="A bar for each arm: the median time of its runs, and the time to a target. A line "
        "goes from the shortest to the longest.",
        spec=spec,
    )
    return Figure(key="times", title="Time of the arms", columns=columns, rows=rows, plots=[plot])


def _colours(sides: Sequence[str]) -> Mapping[str, Spec]:
    return {"color": coloured("side", sides)["color"]} if len(sides) > 1 else {}


def _speed_ups(found: ExperimentResult) -> list[Figure]:
    """By ranks, where the arms differ in these; those whose ranks share cores are left out."""
    rows: list[list[Value]] = [
        [arm.ranks, side, _how(arm), speed_up, efficiency, float(arm.ranks)]
        for arm in found.arms
        if arm.ranks
        for side, speed_up, efficiency in (
            (_OWN, arm.speed_up, arm.efficiency),
            (_TARGET, arm.target_speed_up, arm.target_efficiency),
        )
        if speed_up is not None and efficiency is not None
    ]
    ranks = sorted({int(row[0]) for row in rows if isinstance(row[0], int)})
    if len(ranks) < 2:
        return []
    sides = list(dict.fromkeys(f"{row[1]}, {row[2]}" for row in rows))
    rows = [[row[0], f"{row[1]}, {row[2]}", *row[3:]] for row in rows]
    x = number("ranks", "ranks", log=True, axis={"values": ranks})
    columns = [
        Column(key="ranks", head="ranks"),
        Column(key="side", head="what"),
        Column(key="speed_up", head="speed-up", form=".2f"),
        Column(key="efficiency", head="efficiency", form=".0%"),
        Column(key="ideal", head="ideal speed-up", form=".0f"),
    ]
    return [
        Figure(
            key="speed-up",
            title="Speed-up",
            columns=columns,
            rows=rows,
            plots=[
                Plot(
                    title="Speed-up by ranks",
                    description="The speed-up to the baseline against the ranks; the dashed line is the ideal.",
                    spec={
                        "encoding": {"x": x},
                        "layer": [_ideal("ideal"), _points(number("speed_up", "speed-up", log=True), sides)],
                    },
                ),
                Plot(
                    title="Efficiency by ranks",
                    description="The speed-up divided by the ranks, against the number of ranks.",
                    spec={
                        "encoding": {"x": x},
                        "layer": [
                            _points(number("efficiency", "efficiency", zero=True, axis={"format": ".0%"}), sides)
                        ],
                    },
                ),
            ],
        )
    ]


def _how(arm: ArmResult) -> str:
    return "ranks that sleep" if arm.sleeps else "ranks that compute"


def _ideal(field: str) -> Spec:
    mark = {"type": "line", "strokeDash": [4, 4], "color": "currentColor", "opacity": 0.6, "aria": False}
    return {"mark": mark, "encoding": {"y": number(field, "speed-up", log=True)}}


def _points(y: Spec, sides: Sequence[str]) -> Spec:
    return {
        "mark": {"type": "line", "point": {"filled": True, "size": 50}},
        "encoding": {"y": y, **coloured("side", sides)},
    }


def _bounds(found: ExperimentResult) -> list[Figure]:
    """What arms reached of the sum of their ranks' own rates."""
    rows: list[list[Value]] = [[arm.name, arm.of_bound] for arm in found.arms if arm.of_bound is not None]
    if len(rows) < 2:
        return []
    spec: Spec = {
        **bars(),
        "mark": {"type": "bar"},
        "encoding": {
            "y": rows_of("arm", order=[str(row[0]) for row in rows]),
            "x": number("share", "share of own rates, added up", zero=True, axis={"format": ".0%"}),
        },
    }
    plot = Plot(
        title="Share of the ranks' own rates",
        description="A bar for each arm: the rate that it reached, of the sum of what its ranks reach each by itself.",
        spec=spec,
    )
    return [
        Figure(
            key="bounds",
            title="Share of the bound",
            columns=[Column(key="arm", head="arm"), Column(key="share", head="share of own rates", form=".1%")],
            rows=rows,
            plots=[plot],
            text="No balancing can reach more than what each rank reaches by itself, added up.",
        )
    ]
