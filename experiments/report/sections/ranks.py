"""What each rank did: its share of the rows over time, and what mixed ranks reached of their own rates."""

from collections.abc import Sequence
from statistics import median

from experiments.records.comparing import figures
from experiments.records.runs import RunRecord, full_steps
from experiments.report.figures import MOST_POINTS, Column, Figure, Plot, Section, Value, key_of, thinned, time_unit
from experiments.report.specs import ROW, SHARES, Spec, bars, coloured, lines, name, number, rows_of
from experiments.report.subjects import Subject, one_of_each
from trainer.output.lines import Step

_MOST_RANKS, _MOST_RUNS = 8, 4
"""Ranks that are drawn one by one; runs whose shares are drawn."""
_MIXED = 1.15
"""By how much the fastest rank is faster than the slowest one where they count as mixed."""


def ranks(subjects: Sequence[Subject]) -> Section:
    several = [each for each in subjects if each.run.latest.world_size > 1 and _whole_splits(each.run)]
    drawn = one_of_each(several, _MOST_RUNS)
    found = [_shares(each, one=len(subjects) == 1) for each in drawn]
    mixed = [each for each in several if _is_mixed(each.run)]
    if mixed:
        found.append(_mixed(mixed))
    text = f"Shares of {_MOST_RUNS} of {len(several)} runs are drawn." if len(several) > _MOST_RUNS else ""
    return Section(key="ranks", title="What each rank did", figures=found, text=text)


def _whole_splits(run: RunRecord) -> list[Step]:
    """The full steps with a share of each of the ranks that the run has now."""
    return [step for step in full_steps(run) if len(step.split) == run.latest.world_size]


def _shares(subject: Subject, *, one: bool) -> Figure:
    run, count = subject.run, subject.run.latest.world_size
    seconds, unit = time_unit(run.passed(run.last))
    kept = _whole_splits(run)
    parts = thinned(len(kept), MOST_POINTS // min(count, _MOST_RANKS))
    time_column = Column(key="time", head=f"time, {unit}", form=",.2f")
    rows: list[list[Value]]
    if count <= _MOST_RANKS:
        rows = [
            [run.passed(kept[part.stop - 1].time) / seconds, f"rank {rank}", share]
            for part in parts
            for rank, share in enumerate(_mean_shares(kept[part.start : part.stop]))
        ]
        columns = [time_column, Column(key="rank", head="rank"), Column(key="share", head="share", form=".1%")]
        spec = lines(
            number("time", f"time since the start, {unit}"),
            number("share", "share of the global batch", zero=True, axis=SHARES),
            [f"rank {rank}" for rank in range(count)],
            by="rank",
        )
        description, text = "A line for each rank: its share of the rows of a global batch over time.", ""
    else:
        found = [
            (run.passed(kept[part.stop - 1].time), sorted(_mean_shares(kept[part.start : part.stop]))) for part in parts
        ]
        rows = [[at / seconds, each[0], median(each), each[-1]] for at, each in found]
        columns = [
            time_column,
            Column(key="least", head="smallest share", form=".2%"),
            Column(key="middle", head="median share", form=".2%"),
            Column(key="most", head="largest share", form=".2%"),
        ]
        spec = _band(f"time since the start, {unit}")
        description = f"The smallest, the median and the largest share of {count} ranks of a global batch over time."
        text = "The line is the median of the ranks' shares; the band goes from the smallest to the largest."
    of = "" if one else f", {subject.name}"
    plot = Plot(title=f"Shares of the ranks{of}", description=description, spec=spec)
    return Figure(
        key="shares" if one else key_of("shares", subject.name),
        title=f"Shares of the ranks{of}",
        columns=columns,
        rows=rows,
        plots=[plot],
        text=text,
    )


def _mean_shares(steps: Sequence[Step]) -> list[float]:
    whole = sum(sum(step.split) for step in steps)
    return [sum(rows) / whole for rows in zip(*(step.split for step in steps), strict=True)]


def _band(x_title: str) -> Spec:
    y = number("least", "share of the global batch", zero=True, axis={"format": ".1%"})
    return {
        "encoding": {"x": number("time", x_title)},
        "layer": [
            {"mark": {"type": "area", "opacity": 0.25, "aria": False}, "encoding": {"y": y, "y2": {"field": "most"}}},
            {"mark": {"type": "line", "aria": False}, "encoding": {"y": {**y, "field": "middle"}}},
            {
                "mark": {"type": "point", "filled": True, "opacity": 0, "size": 60},
                "encoding": {"y": {**y, "field": "middle"}, "description": ROW},
            },
        ],
    }


def _is_mixed(run: RunRecord) -> bool:
    rates = run.own_rates
    return len(rates) > 1 and min(rates) > 0 and max(rates) / min(rates) > _MIXED


def _mixed(subjects: Sequence[Subject]) -> Figure:
    rows: list[list[Value]] = []
    for subject in subjects:
        run = subject.run
        rates, reached = run.own_rates, figures(run)["rows_per_second"]
        rows.append(
            [
                subject.name,
                str(run.latest.config.get("balance", "-")),
                " + ".join(f"{rate:,.0f}" for rate in rates) if len(rates) <= _MOST_RANKS else f"{len(rates)} ranks",
                sum(rates),
                reached,
                None if reached is None else reached / sum(rates),
                min(rates) * len(rates) / sum(rates),
            ]
        )
    bounds = ("reached", "most without balancing")
    spec: Spec = {
        **bars(14),
        "transform": [
            {"fold": ["share", "equal"], "as": ["which", "part"]},
            {"calculate": f"datum.which == 'share' ? '{bounds[0]}' : '{bounds[1]}'", "as": "bound"},
        ],
        "mark": {"type": "bar"},
        "encoding": {
            "x": number("part", "share of own rates, added up", zero=True, axis=SHARES),
            "y": rows_of("run", [each.name for each in subjects]),
            "yOffset": name("bound", order=bounds),
            "color": coloured("bound", bounds)["color"],
        },
    }
    return Figure(
        key="mixed",
        title="Ranks of different speed",
        columns=[
            Column(key="run", head="run"),
            Column(key="balance", head="balance"),
            Column(key="rates", head="own rates, rows/s"),
            Column(key="ideal", head="their sum, rows/s", form=",.0f"),
            Column(key="rate", head="reached, rows/s", form=",.0f"),
            Column(key="share", head="share", form=".0%"),
            Column(key="equal", head="most that equal shares reach", form=".0%"),
        ],
        rows=rows,
        plots=[
            Plot(
                title="Share of the ranks' own rates",
                description="Two bars for each run: what it reached of the sum of its ranks' own rates, and the most "
                "that equal shares could reach, where all wait for the slowest.",
                spec=spec,
            )
        ],
        text="No balancer can exceed the sum of the rates that the ranks reach by themselves.",
    )
