"""Runs beside each other: speed-up by ranks with the ideal line, convergence by ranks, and price against time."""

from collections.abc import Sequence
from statistics import fmean, median

from experiments.comparing import differing_settings, figures
from experiments.report.figures import Column, Figure, Plot, Section, Value, time_unit
from experiments.report.specs import Spec, counted, lines, measured, name, number
from experiments.report.subjects import MOST_LINES, Subject
from experiments.runs import numbers

_OF_RANKS = {"ranks", "devices", "seed"}
"""Settings that differ where runs differ in their ranks alone."""


def comparison(subjects: Sequence[Subject]) -> Section:
    """The section of what several runs show together; without figures where they show nothing."""
    found = [_scaling(subjects), _convergence(subjects), _price(subjects)]
    return Section(key="comparison", title="Beside each other", figures=[each for each in found if each is not None])


def _by_ranks(subjects: Sequence[Subject]) -> dict[int, list[Subject]]:
    """The finished runs by their numbers of ranks; empty unless they differ in these, and in nothing else."""
    found: dict[int, list[Subject]] = {}
    finished = [each for each in subjects if each.run.state == "finished" and not each.run.sleeps]
    for each in finished:
        found.setdefault(each.run.latest.world_size, []).append(each)
    others = {name for settings in differing_settings([each.run for each in finished]) for name in settings}
    return dict(sorted(found.items())) if len(found) > 1 and others <= _OF_RANKS else {}


def _scaling(subjects: Sequence[Subject]) -> Figure | None:
    found = _by_ranks(subjects)
    if not found:
        return None
    rates = {ranks: [_rate(each) for each in members] for ranks, members in found.items()}
    fewest = min(found)
    base = median(rates[fewest]) / fewest
    rows: list[list[Value]] = [
        [
            ranks,
            len(each),
            median(figures(subject.run)["seconds"] for subject in found[ranks]),
            median(each),
            median(each) / base,
            min(each) / base,
            max(each) / base,
            median(each) / base / ranks,
            float(ranks),
        ]
        for ranks, each in rates.items()
        if base
    ]
    columns = [
        Column(key="ranks", head="ranks"),
        Column(key="runs", head="runs"),
        Column(key="seconds", head="training, s", form=",.1f"),
        Column(key="rate", head="rows/s", form=",.0f"),
        Column(key="speed_up", head="speed-up", form=".2f"),
        Column(key="least", head="least", form=".2f"),
        Column(key="most", head="most", form=".2f"),
        Column(key="efficiency", head="efficiency", form=".0%"),
        Column(key="ideal", head="ideal speed-up", form=".0f"),
    ]
    text = (
        f"Speed-up is rows a second, of the median run, over those of a rank of the {fewest}-rank runs. Ranks that "
        "share the cores of one machine cannot be faster than its cores."
    )
    x = number("ranks", "ranks", log=True, axis={"values": list(found)})
    return Figure(
        key="scaling",
        title="Speed-up",
        columns=columns,
        rows=rows,
        plots=[
            Plot(
                title="Speed-up by ranks",
                description="The speed-up against the number of ranks, from the slowest run to the fastest, beside the "
                "ideal: as many times as there are ranks.",
                spec=_speed_up(x),
            ),
            Plot(
                title="Efficiency by ranks",
                description="Speed-up divided by the number of ranks; the line at 100% is the ideal.",
                spec={
                    "encoding": {"x": x},
                    "layer": [
                        {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": None, "y": {"datum": 1}}},
                        {
                            "mark": {"type": "line", "point": {"filled": True, "size": 50}},
                            "encoding": {"y": number("efficiency", "efficiency", zero=True, axis={"format": ".0%"})},
                        },
                    ],
                },
            ),
        ],
        text=text,
    )


def _rate(subject: Subject) -> float:
    rate = figures(subject.run)["rows_per_second"]
    return float(rate) if isinstance(rate, int | float) else 0.0


def _speed_up(x: Spec) -> Spec:
    y = number("speed_up", "speed-up", log=True)
    return {
        "encoding": {"x": x},
        "layer": [
            {
                "mark": {"type": "line", "strokeDash": [4, 4], "color": "currentColor", "opacity": 0.6},
                "encoding": {"y": {**y, "field": "ideal"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"y": {**y, "field": "least"}, "y2": {"field": "most"}},
            },
            {"mark": {"type": "line", "point": {"filled": True, "size": 50}}, "encoding": {"y": y}},
        ],
    }


def _convergence(subjects: Sequence[Subject]) -> Figure | None:
    found = dict(list(_by_ranks(subjects).items())[:MOST_LINES])
    rows: list[tuple[str, int, float, float | None]] = []
    for ranks, members in found.items():
        epochs = min(len(each.run.epochs) for each in members)
        for number_ in range(epochs):
            at = [each.run.epochs[number_] for each in members]
            losses = [found_["loss"] for epoch in at if "loss" in (found_ := numbers(epoch.validation))]
            rows.append(
                (_ranks(ranks), number_ + 1, fmean(epoch.loss for epoch in at), fmean(losses) if losses else None)
            )
    if not rows:
        return None
    names = [_ranks(ranks) for ranks in found]
    x = counted("epoch", "epoch", max(epoch for _, epoch, *_ in rows))
    return Figure(
        key="convergence",
        title="Convergence by ranks",
        columns=[
            Column(key="ranks", head="ranks"),
            Column(key="epoch", head="epoch"),
            Column(key="loss", head="loss, training rows", form=".4f"),
            Column(key="validation", head="loss, validation rows", form=".4f"),
        ],
        rows=rows,
        plots=[
            Plot(
                title=f"Loss of {of} rows by epoch",
                description=f"The mean loss of the {of} rows after each epoch, a line for each number of ranks.",
                spec=lines(x, measured(key, f"loss of {of} rows"), names, by="ranks"),
            )
            for key, of in (("loss", "training"), ("validation", "validation"))
        ],
        text="Means of the runs with as many ranks.",
    )


def _ranks(number_: int) -> str:
    return "1 rank" if number_ == 1 else f"{number_} ranks"


def _price(subjects: Sequence[Subject]) -> Figure | None:
    paid = [(each, each.run.dollars, _launched(each)) for each in subjects if each.run.dollars]
    if len(paid) < 2:
        return None
    seconds, unit = time_unit(max(took for _, _, took in paid))
    front: set[str] = set()
    best = float("inf")
    for each, _, took in sorted(paid, key=lambda one: (one[1], one[2])):
        if took < best:
            front.add(each.name)
            best = took
    rows: list[list[Value]] = [
        [each.name, dollars, took / seconds, "on the front" if each.name in front else "beaten"]
        for each, dollars, took in paid
    ]
    encoding = {"x": number("time", f"time, {unit}", zero=True), "y": number("dollars", "cost, $", zero=True)}
    return Figure(
        key="price",
        title="Price against time",
        columns=[
            Column(key="run", head="run"),
            Column(key="dollars", head="cost, $", form=",.2f"),
            Column(key="time", head=f"time, {unit}", form=",.2f"),
            Column(key="front", head="no other is cheaper and faster"),
        ],
        rows=rows,
        plots=[
            Plot(
                title="Price against time",
                description="A point for each run. The line joins those that no other beats in both price and time.",
                spec={
                    "encoding": encoding,
                    "layer": [
                        {
                            "transform": [{"filter": "datum.front == 'on the front'"}],
                            "mark": {"type": "line", "interpolate": "step-after", "strokeDash": [4, 4], "aria": False},
                        },
                        {
                            "mark": {"type": "point", "filled": True, "size": 70},
                            "encoding": {"shape": name("front"), "color": name("front"), "detail": name("run")},
                        },
                        {"mark": {"type": "text", "dy": -10, "limit": 110}, "encoding": {"text": name("run")}},
                    ],
                },
            )
        ],
    )


def _launched(subject: Subject) -> float:
    """Seconds of the whole launch, or, where they are not known, of the run."""
    seconds = subject.run.launch.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else subject.run.seconds
