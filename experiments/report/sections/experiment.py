"""What an experiment was for and what it found: its arms, beside each other and beside their baseline."""

from collections.abc import Sequence

from experiments.records.comparing import described
from experiments.report.figures import Column, Figure, Plot, Section, Value, measure_columns, time_unit
from experiments.report.sections.scaling import IDEAL, scaling_plots
from experiments.report.specs import SHARES, Spec, bars, coloured, name, number, rows_of
from experiments.results.arm_results import ArmResult, ExperimentResult

_OWN, _TARGET = "by time", "by time to the target"
_WORD_COLUMNS = (
    Column(key="seconds_an_epoch", head="an epoch, s", form=",.1f"),
    Column(key="words_a_second", head="words/s", form=",.0f"),
    Column(key="pip_loss", head="best PIP loss", form=",.2f"),
    Column(key="pip_mean_square", head="its mean square", form=".4g"),
    Column(key="loss", head="loss of a pair", form=".4f"),
)
"""Fields of WordResult."""


def experiment(found: ExperimentResult) -> Section:
    figures = [*_arms(found), _times(found), *_speed_ups(found), *_bounds(found)]
    target = f" Its target is {found.target}." if found.target else ""
    baseline = f" Speed-ups are to {' or '.join(found.baseline)}." if found.baseline else ""
    runs = f" Each arm runs {found.repeats} times, in turns." if found.repeats > 1 else ""
    return Section(
        key="experiment",
        title=f"The experiment {found.name}",
        figures=[each for each in figures if each is not None],
        text=f"{found.about.rstrip('.')}.{target}{baseline}{runs}",
    )


def _arms(found: ExperimentResult) -> list[Figure]:
    trains = found.kind != "preprocessing"
    measures = list(dict.fromkeys(measure for arm in found.arms for measure in arm.measures))
    columns = [
        Column(key="arm", head="arm"),
        Column(key="place", head="on"),
        Column(key="ranks", head=_ranks(found)),
        Column(key="runs", head="runs"),
        Column(key="seconds", head="time, s", form=",.1f"),
        Column(key="rate", head="rows/s" if trains else "MB/s", form=",.0f" if trains else ",.1f"),
        Column(key="target", head="to the target, s", form=",.1f"),
        Column(key="speed_up", head="speed-up", form=".2f"),
        Column(key="efficiency", head="efficiency", form=".0%"),
        Column(key="target_speed_up", head="speed-up to the target", form=".2f"),
        Column(key="target_efficiency", head="efficiency to the target", form=".0%"),
        Column(key="of_bound", head="share of own rates", form=".0%"),
        *measure_columns(measures),
        *_WORD_COLUMNS,
        Column(key="sent", head="sent a step and rank, kB", form=",.1f"),
        Column(key="dollars", head="a run, $", form=",.2f"),
        Column(key="remark", head="remark"),
    ]
    rows: list[list[Value]] = [
        [
            arm.name,
            arm.place or ("this machine" if found.cores and (arm.runs or arm.finished) else None),
            arm.ranks,
            arm.finished,
            arm.seconds and arm.seconds.median,
            arm.rate and arm.rate.median / (1 if trains else 1e6),
            arm.to_target and arm.to_target.median,
            arm.speed_up,
            arm.efficiency,
            arm.target_speed_up,
            arm.target_efficiency,
            arm.of_bound,
            *(arm.measures.get(measure) for measure in measures),
            *(getattr(arm.words, column.key, None) for column in _WORD_COLUMNS),
            None if arm.bytes_a_step is None else arm.bytes_a_step / 1e3,
            arm.dollars,
            arm.remark,
        ]
        for arm in found.arms
    ]
    text = f"Times and rates are medians of the finished runs{', of training without evaluation' if trains else ''}."
    whole = Figure(key="arms", title="Arms", columns=columns, rows=rows, text=text).without_empty_columns()
    return whole.in_two(("measure_", "pip_", "loss"), key="results-of-arms", title="Results of the arms")


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
            "y": rows_of("arm", [arm.name for arm in timed]),
            **({"yOffset": name("side", order=sides)} if len(sides) > 1 else {}),
        },
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {
                    "x": number("median", f"time, {unit}", zero=True),
                    **({"color": coloured("side", sides)["color"]} if len(sides) > 1 else {}),
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


def _speed_ups(found: ExperimentResult) -> list[Figure]:
    """By ranks, where the arms differ in these; arms without an efficiency are left out."""
    shown = [
        (arm, arm.ranks, what, speed_up, efficiency)
        for arm in found.arms
        if arm.ranks
        for what, speed_up, efficiency in (
            (_OWN, arm.speed_up, arm.efficiency),
            (_TARGET, arm.target_speed_up, arm.target_efficiency),
        )
        if speed_up is not None and efficiency is not None
    ]
    counts = sorted({ranks for _, ranks, *_ in shown})
    if len(counts) < 2:
        return []
    places = [(ranks, _side(found, arm, what)) for arm, ranks, what, *_ in shown]
    apart = _differing([arm for arm, *_ in shown]) if len({*places}) < len(places) else ()
    rows: list[list[Value]] = [
        [arm.name, ranks, _side(found, arm, what, apart), speed_up, efficiency, float(ranks)]
        for arm, ranks, what, speed_up, efficiency in shown
    ]
    columns = [
        Column(key="arm", head="arm"),
        Column(key="ranks", head=_ranks(found)),
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
            plots=scaling_plots(counts, of=_ranks(found), sides=list(dict.fromkeys(str(row[2]) for row in rows))),
            text=f"{IDEAL.format(_ranks(found))} Arms that have no efficiency are left out.",
        )
    ]


def _ranks(found: ExperimentResult) -> str:
    """What the arms have more or less of."""
    return "cores" if found.kind == "preprocessing" else "ranks"


def _side(found: ExperimentResult, arm: ArmResult, what: str, apart: Sequence[str] = ()) -> str:
    """The line that an arm's point is of; `apart`: settings by which lines are distinguished."""
    how = "" if found.kind == "preprocessing" else "asleep" if arm.sleeps else "computing"
    return ", ".join(filter(None, (what, how, described({name: arm.settings.get(name) for name in apart}))))


def _differing(arms: Sequence[ArmResult]) -> list[str]:
    names = dict.fromkeys(name for arm in arms for name in arm.settings)
    return [name for name in names if len({repr(arm.settings.get(name)) for arm in arms}) > 1]


def _bounds(found: ExperimentResult) -> list[Figure]:
    """What arms reached of the sum of their ranks' own rates."""
    rows: list[list[Value]] = [[arm.name, arm.of_bound] for arm in found.arms if arm.of_bound is not None]
    if len(rows) < 2:
        return []
    spec: Spec = {
        **bars(),
        "mark": {"type": "bar"},
        "encoding": {
            "y": rows_of("arm", [str(row[0]) for row in rows]),
            "x": number("share", "share of own rates, added up", zero=True, axis=SHARES),
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
            text="No balancer can exceed the sum of the rates that the ranks reach by themselves.",
        )
    ]
