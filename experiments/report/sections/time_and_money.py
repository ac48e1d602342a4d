"""Where every second and dollar went, by causes (`causes.py`): a waterfall of one run, bars of several."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from experiments.records import causes
from experiments.records.causes import Cause
from experiments.report.drawing import COLOURS
from experiments.report.figures import Column, Figure, Plot, Section, Value, time_unit
from experiments.report.specs import Spec, bars, name, number, rows_of
from experiments.report.subjects import Subject

_MOST_BARS, _MOST_DETAILED = 24, 6
"""Runs that are drawn, and runs whose causes are all shown."""
_KINDS = {
    causes.COMPUTING: "computing",
    causes.WAITING: "waiting",
    causes.TEXT: "waiting",
    causes.ALL_REDUCE: "all-reduce",
    causes.LOADING: "starting",
    causes.RATES: "starting",
    causes.STARTING: "starting",
    causes.REPEATED: "faults",
    causes.DOWN: "faults",
}
"""Causes that bars show separately; all others are the rest. Stages of a launch besides the training are its start."""
_ORDER = ("computing", "waiting", "all-reduce", "starting", "rest", "faults")
_REST = (causes.DATA, causes.CHECKPOINTS, causes.STEPS, causes.EVALUATION, causes.MIXED)
_TEXT = (
    "Computing is forward and backward passes at the ranks' own speed. Waiting is for slower ranks, or for new text. "
    "The all-reduce sums the gradients over the ranks. A start that was killed left no breakdown of its last seconds: "
    'they are "not told apart".'
)


def time_and_money(subjects: Sequence[Subject]) -> Section:
    found = [(subject.name, causes.causes(subject.run)) for subject in subjects[:_MOST_BARS]]
    if len(found) > _MOST_DETAILED:
        found = [(run, _by_kinds(listed)) for run, listed in found]
    figures = [_time(found)]
    paid = [(run, [each for each in listed if each.dollars is not None]) for run, listed in found]
    if any(cause.dollars for _, listed in paid for cause in listed):
        is_whole = all(cause.dollars is not None for _, listed in found for cause in listed)
        figures.append(_money([(run, listed) for run, listed in paid if listed], is_whole=is_whole))
    if (beside := predicted(subjects)) is not None:
        figures.append(beside)
    left_out = len(subjects) - len(found)
    text = f"{_TEXT} {left_out} more runs are left out." if left_out else _TEXT
    return Section(key="time", title="Where the time went", figures=figures, text=text)


def _time(found: Sequence[tuple[str, list[Cause]]]) -> Figure:
    totals = [sum(cause.seconds for cause in listed) for _, listed in found]
    seconds, unit = time_unit(max(totals, default=0.0))
    amounts = [[cause.seconds / seconds for cause in listed] for _, listed in found]
    return _figure("time", "Time by cause", found, amounts, unit=unit, form=",.1f")


def _money(found: Sequence[tuple[str, list[Cause]]], *, is_whole: bool) -> Figure:
    """`is_whole`: whether there is no other run and no other cause, of which the dollars are not known."""
    amounts = [[cause.dollars or 0.0 for cause in listed] for _, listed in found]
    cents = max(map(sum, amounts)) < 1
    figure = _figure("money", "Money by cause", found, amounts, unit="$", form=",.4f" if cents else ",.2f")
    text = "" if is_whole else "The cost of a launch is known when it has ended; others are left out."
    return replace(figure, text=text)


def _figure(
    key: str,
    title: str,
    found: Sequence[tuple[str, list[Cause]]],
    amounts: Sequence[Sequence[float]],
    *,
    unit: str,
    form: str,
) -> Figure:
    rows: list[list[Value]] = []
    for (run, listed), each in zip(found, amounts, strict=True):
        total, before = sum(each), 0.0
        for cause, amount in zip(listed, each, strict=True):
            share = amount / total if total else 0.0
            rows.append([run, cause.name, _kind(cause.name), amount, share, before, before + amount])
            before += amount
    columns = [
        Column(key="run", head="run"),
        Column(key="cause", head="cause"),
        Column(key="kind", head="drawn as"),
        Column(key="amount", head=f"{key}, {unit}", form=form),
        Column(key="share", head="share", form=".1%"),
        Column(key="since", head=f"from, {unit}", form=form),
        Column(key="until", head=f"to, {unit}", form=form),
    ]
    several = len(found) > 1
    plot = (
        Plot(
            title=title,
            description=f"A bar for each run, of its {key} by cause: {', '.join(_ORDER)}.",
            spec=_bars([run for run, _ in found], f"{key}, {unit}"),
        )
        if several
        else Plot(
            title=title,
            description=f"A waterfall of the run's {key}: a bar for each cause, each from where the one above it ends.",
            spec=_waterfall(
                [cause.name for cause in found[0][1]],
                f"{key}, {unit}",
                most=sum(amounts[0]) if amounts else 0.0,
                form=form,
            ),
        )
    )
    return Figure(key=key, title=title, columns=columns, rows=rows, plots=[plot])


def _by_kinds(listed: Sequence[Cause]) -> list[Cause]:
    """The causes added up as bars show them."""
    found: dict[str, Cause] = {}
    for each in listed:
        kind = _kind(each.name)
        before = found.get(kind, Cause(name=kind, seconds=0.0, dollars=None))
        dollars = [one.dollars for one in (before, each) if one.dollars is not None]
        seconds = before.seconds + each.seconds
        found[kind] = Cause(name=kind, seconds=seconds, dollars=sum(dollars) if dollars else None)
    return [found[kind] for kind in _ORDER if kind in found]


def _kind(cause: str) -> str:
    plain = cause.rpartition(": ")[2]
    if plain in _ORDER:
        return plain
    return _KINDS.get(plain, "rest" if plain in _REST else "starting")


def _waterfall(names: Sequence[str], title: str, *, most: float, form: str) -> Spec:
    """`most`: where the last bar ends; beyond it there is a place for its number."""
    place = 1 + 0.06 * len(format(most, form))
    x = {**number("since", title), "scale": {"domain": [0, place * most or 1], "nice": False}}
    return {
        **bars(),
        "encoding": {"y": rows_of("cause", names)},
        "layer": [
            {
                "mark": {"type": "bar"},
                "encoding": {"x": x, "x2": {"field": "until"}, "color": _by_kind(legend=False)},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11},
                "encoding": {"x": {**x, "field": "until"}, "text": {"field": "amount", "format": form}},
            },
        ],
    }


def _bars(names: Sequence[str], title: str) -> Spec:
    return {
        **bars(),
        "transform": [
            {"aggregate": [{"op": "sum", "field": "amount", "as": "sum"}], "groupby": ["run", "kind"]},
            {"calculate": f"indexof({list(_ORDER)}, datum.kind)", "as": "place"},
            {"calculate": f"datum.run + ': ' + datum.kind + ', {title}: ' + format(datum.sum, ',.2f')", "as": "told"},
        ],
        "mark": {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 1},
        "encoding": {
            "x": {**number("sum", title), "stack": "zero"},
            "y": rows_of("run", names),
            "color": _by_kind(legend=True),
            "order": {"field": "place", "type": "quantitative"},
            "description": {"field": "told", "type": "nominal"},
        },
    }


def _by_kind(*, legend: bool) -> Spec:
    scale = {"domain": list(_ORDER), "range": COLOURS}
    return {**name("kind"), "scale": scale, **({"legend": {"columns": 2}} if legend else {"legend": None})}


Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Range(BaseModel):
    low: Seconds
    middle: Seconds
    high: Seconds


class _Predicted(BaseModel):
    """What is read of `predicted` in launch.json."""

    seconds: _Range
    stages: dict[str, Seconds] = {}


class _Took(BaseModel):
    name: str
    seconds: Seconds


class _Launch(BaseModel):
    seconds: Seconds
    stages: list[_Took] = []
    predicted: _Predicted


def predicted(subjects: Sequence[Subject]) -> Figure | None:
    """The table of all launches that were predicted, a row for each stage; None where none was."""
    rows = [[each.name, *cells] for each in subjects for cells in _rows(each.run.launch)]
    if not rows:
        return None
    columns = [
        Column(key="run", head="run"),
        Column(key="stage", head="stage"),
        Column(key="predicted", head="predicted, s", form=",.1f"),
        Column(key="low", head="at least, s", form=",.1f"),
        Column(key="high", head="at most, s", form=",.1f"),
        Column(key="took", head="took, s", form=",.1f"),
        Column(key="off", head="off by", form="+.0%"),
    ]
    return Figure(key="predicted", title="Predicted and measured", columns=columns, rows=rows)


def _rows(launch: Mapping[str, Any]) -> list[list[Value]]:
    """The stages of a launch, and all of them together; empty where it was not predicted, or cannot be read, and where
    AWS was emulated: what was predicted is of its nodes, and what it took of one machine that played them."""
    if launch.get("emulated"):
        return []
    try:
        found = _Launch.model_validate(launch)
    except ValidationError:
        return []
    took, whole = {each.name: each.seconds for each in found.stages}, found.predicted.seconds
    stages: list[list[Value]] = [
        [name, middle, None, None, took.get(name), _off(middle, took.get(name))]
        for name, middle in found.predicted.stages.items()
    ]
    return [*stages, ["all", whole.middle, whole.low, whole.high, found.seconds, _off(whole.middle, found.seconds)]]


def _off(middle: float, seconds: float | None) -> float | None:
    return seconds / middle - 1 if seconds is not None and middle else None
