"""Runs beside each other: speed-up by ranks with the ideal line, convergence by ranks, and price against time."""

from collections.abc import Sequence
from statistics import fmean, median

from experiments.records.comparing import differing_settings, figures
from experiments.records.runs import numbers
from experiments.report.figures import Column, Figure, Plot, Section, Value, shortened, time_unit
from experiments.report.sections.scaling import IDEAL, scaling_plots
from experiments.report.specs import TRAINING, VALIDATION, Spec, both_losses, counted, lines, measured, name, number
from experiments.report.subjects import MOST_LINES, Subject

_OF_RANKS = {"ranks", "devices", "seed"}
"""Settings that differ where runs differ in their ranks alone."""
_FRONT = "on the front"
_PLOT_WIDTH, _PLOT_HEIGHT, _LETTERS = 280, 170, 16
"""About the size of the plot of prices without its axes, in pixels, and the most letters of a name in it."""


def comparison(subjects: Sequence[Subject]) -> Section:
    """The section of what several runs show together; without figures where they show nothing. How those of an
    experiment scale is in its own section."""
    others = [each for each in subjects if not each.is_of_experiment]
    found = [_scaling(others), _convergence(subjects), _price(subjects)]
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
        f"Speed-up is rows a second, of the median run, over those of a rank of the {fewest}-rank runs. "
        f"{IDEAL.format('ranks')} Ranks that share the cores of one machine cannot be faster than its cores."
    )
    return Figure(
        key="scaling",
        title="Speed-up",
        columns=columns,
        rows=rows,
        plots=scaling_plots(list(found), of="ranks", has_spread=True),
        text=text,
    )


def _rate(subject: Subject) -> float:
    rate = figures(subject.run)["rows_per_second"]
    return float(rate) if isinstance(rate, int | float) else 0.0


def _convergence(subjects: Sequence[Subject]) -> Figure | None:
    found = dict(list(_by_ranks(subjects).items())[:MOST_LINES])
    rows: list[tuple[str, int, str, float]] = []
    for ranks, members in found.items():
        epochs = min(len(each.run.epochs) for each in members)
        for number_ in range(epochs):
            at = [each.run.epochs[number_] for each in members]
            losses = [found_["loss"] for epoch in at if "loss" in (found_ := numbers(epoch.validation))]
            both = {TRAINING: [epoch.loss for epoch in at], VALIDATION: losses}
            rows += [(_ranks(ranks), number_ + 1, of, fmean(each)) for of, each in both.items() if each]
    if not rows:
        return None
    x = counted("epoch", "epoch", max(epoch for _, epoch, *_ in rows))
    curves = lines(x, measured("loss", "loss"), [_ranks(ranks) for ranks in found], by="ranks")
    return Figure(
        key="convergence",
        title="Convergence by ranks",
        columns=[
            Column(key="ranks", head="ranks"),
            Column(key="epoch", head="epoch"),
            Column(key="of", head="rows"),
            Column(key="loss", head="loss", form=".4f"),
        ],
        rows=rows,
        plots=[
            Plot(
                title="Loss by epoch",
                description="The mean losses of the training rows and of the validation rows after each epoch, a line "
                "of each for each number of ranks. That of the validation rows is broad and pale.",
                spec=both_losses(curves, rows),
            )
        ],
        text="Means of the runs with as many ranks.",
    )


def _ranks(number_: int) -> str:
    return "1 rank" if number_ == 1 else f"{number_} ranks"


def _price(subjects: Sequence[Subject]) -> Figure | None:
    paid = [(each, each.run.dollars, each.run.launched) for each in subjects if each.run.dollars]
    if len(paid) < 2:
        return None
    seconds, unit = time_unit(max(took for _, _, took in paid))
    front: set[str] = set()
    best = float("inf")
    for each, _, took in sorted(paid, key=lambda one: (one[1], one[2])):
        if took < best:
            front.add(each.name)
            best = took
    rows: list[tuple[str, float, float, str]] = [
        (each.name, dollars, took / seconds, _FRONT if each.name in front else "beaten") for each, dollars, took in paid
    ]
    points = {
        "x": number("time", f"time, {unit}", zero=True),
        "y": number("dollars", "cost, $", zero=True),
        "shape": name("front"),
        "color": name("front"),
        "detail": name("run"),
    }
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
                    "encoding": {"x": points["x"], "y": points["y"]},
                    "layer": [
                        {
                            "transform": [{"filter": f"datum.front == '{_FRONT}'"}],
                            "mark": {"type": "line", "interpolate": "step-after", "strokeDash": [4, 4], "aria": False},
                        },
                        {"mark": {"type": "point", "filled": True, "size": 70}, "encoding": points},
                        *(_label(place, rows[place][0], align) for place, align in _labelled(rows)),
                    ],
                },
            )
        ],
        text="The line joins the runs that no other beats in both. Where there is no place for a name, point at it.",
    )


def _labelled(rows: Sequence[tuple[str, float, float, str]]) -> list[tuple[int, str]]:
    """The rows whose points have a place for their names, each with the side on which the point is (left or right):
    those on the front first, and none over a name or a point that is there already."""
    widest, highest = max(time for _, _, time, _ in rows), max(dollars for _, dollars, _, _ in rows)
    at = [(time / widest * _PLOT_WIDTH, dollars / highest * _PLOT_HEIGHT) for _, dollars, time, _ in rows]
    taken = [(x - 6, x + 6, y) for x, y in at]
    found = []
    for place in sorted(range(len(rows)), key=lambda each: rows[each][3] != _FRONT):
        (x, y), letters = at[place], min(_LETTERS, len(rows[place][0]))
        is_left = x < _PLOT_WIDTH / 2
        low, high = (x + 7, x + 7 + 7 * letters) if is_left else (x - 7 - 7 * letters, x - 7)
        if all(high < left or low > right or abs(y - height) > 12 for left, right, height in taken):
            taken.append((low, high, y))
            found.append((place, "left" if is_left else "right"))
    return found


def _label(place: int, text: str, align: str) -> Spec:
    return {
        "transform": [{"filter": f"datum.row == {place}"}],
        "mark": {"type": "text", "align": align, "dx": 8 if align == "left" else -8, "aria": False},
        "encoding": {"text": {"value": shortened(text, _LETTERS)}},
    }
