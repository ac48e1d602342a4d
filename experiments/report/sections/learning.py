"""How the runs learnt: loss and measures by step, epoch, time and dollar, and what was mistaken for what."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from common.display import plural
from experiments.records.runs import RunRecord, full_steps, numbers
from experiments.report.drawing import HEIGHT
from experiments.report.figures import (
    MOST_POINTS,
    Column,
    Figure,
    Plot,
    Section,
    Value,
    key_of,
    measure_columns,
    thinned,
    time_unit,
)
from experiments.report.specs import (
    TRAINING,
    VALIDATION,
    Spec,
    are_upright,
    both_losses,
    columns_of,
    counted,
    lines,
    measured,
    name,
    number,
    rows_of,
)
from experiments.report.subjects import MOST_LINES, Count, Subject, groups, one_of_each

_MOST_CLASSES_DRAWN, _MOST_PAIRS, _MOST_MATRICES = 30, 60, 4
_FEWEST_POINTS = 8
"""Of a run, however many there are."""
_MOST_LETTERS_WRITTEN = 30
"""In a row of the confusion matrix."""


def learning(subjects: Sequence[Subject]) -> Section:
    """The section of curves and confusions, of the runs that learnt."""
    subjects = [each for each in subjects if not each.run.sleeps]
    drawn = [each for group in list(groups(subjects).values())[:MOST_LINES] for each in group]
    left_out = len(subjects) - len(drawn)
    text = f"The first {MOST_LINES} kinds of runs are drawn; {plural(left_out, 'run')} left out. " if left_out else ""
    figures = [figure for figure in (_losses(drawn), _measures(drawn)) if figure is not None]
    evaluated = [each for each in subjects if _matrix(each.run)]
    chosen = one_of_each(evaluated, _MOST_MATRICES)
    if len(evaluated) > len(chosen):
        text += f"Confusion is shown of {len(chosen)} of {len(evaluated)} runs."
    matrices = [(each, matrix) for each in chosen if (matrix := _matrix(each.run))]
    figures += [_confusion(each, matrix, several=len(subjects) > 1) for each, matrix in matrices]
    return Section(key="learning", title="What was learnt", figures=figures, text=text.strip())


def _losses(subjects: Sequence[Subject]) -> Figure | None:
    seconds, unit = time_unit(max((each.run.passed(each.run.last) for each in subjects), default=0.0))
    paid = any(each.run.dollars for each in subjects)
    rows: list[list[Value]] = []
    for subject in subjects:
        run = subject.run
        an_epoch = run.latest.steps / max(1, run.latest.epochs)
        for of, step, moment, loss in _loss_points(run, max(_FEWEST_POINTS, MOST_POINTS // len(subjects)), an_epoch):
            passed = run.passed(moment)
            rows.append(
                [
                    *_who(subject, subjects),
                    of,
                    step,
                    step / an_epoch if an_epoch else None,
                    passed / seconds,
                    *([_paid(run, passed)] if paid else []),
                    loss,
                ]
            )
    if not rows:
        return None
    axes = [
        ("step", "step", "step"),
        ("epoch", "epoch", "epoch"),
        ("time", f"time since the start, {unit}", "time"),
        *([("dollars", "cost so far, $", "dollar")] if paid else []),
    ]
    plots = [
        Plot(
            title=f"Loss by {short}",
            description=f"The mean loss of the training rows and that of the validation rows against the {short}, a "
            "line of each for each run. That of the validation rows is broad and pale.",
            spec=both_losses(_curves(number(key, title), measured("loss", "loss"), subjects), rows),
        )
        for key, title, short in axes
    ]
    columns = [
        *_who_columns(subjects),
        Column(key="of", head="rows"),
        Column(key="step", head="step", form=","),
        Column(key="epoch", head="epoch", form=".2f"),
        Column(key="time", head=f"time, {unit}", form=",.2f"),
        *([Column(key="dollars", head="cost so far, $", form=",.2f")] if paid else []),
        Column(key="loss", head="loss", form=".4f"),
    ]
    text = (
        "Each point of the training rows is the mean of the recorded steps since the one before, without the short "
        "last batch of an epoch; those of the validation rows are after an epoch. "
        "Time includes evaluation, but not what passed between two starts."
        f"{' The cost is spread evenly over it.' if paid else ''}"
    )
    return Figure(key="loss", title="Loss", columns=columns, rows=rows, plots=plots, text=text)


def _loss_points(run: RunRecord, most: int, an_epoch: float) -> Iterator[tuple[str, int, float, float]]:
    """The rows, step, time and loss of at most `most` points of the training rows, and then of the validation rows.
    `an_epoch`: the steps of an epoch."""
    full = full_steps(run)
    for part in thinned(len(full), most):
        steps = full[part.start : part.stop]
        yield TRAINING, steps[-1].step, steps[-1].time, fmean(step.loss for step in steps)
    found = [(epoch, loss) for epoch in run.epochs if (loss := numbers(epoch.validation).get("loss")) is not None]
    for part in thinned(len(found), most):
        epoch, loss = found[part.stop - 1]
        yield VALIDATION, round(epoch.epoch * an_epoch), epoch.time, loss


def _measures(subjects: Sequence[Subject]) -> Figure | None:
    """The table of epochs, and the curves of its first measures."""
    epochs = [(subject, epoch) for subject in subjects for epoch in subject.run.epochs]
    if not epochs:
        return None
    measures = list(dict.fromkeys(measure for _, epoch in epochs for measure in numbers(epoch.validation)))
    measures = [each for each in measures if each != "majority"]
    seconds, unit = time_unit(max(each.run.passed(each.run.last) for each in subjects))
    paid = any(each.run.dollars for each in subjects)
    rows: list[list[Value]] = []
    for subject, epoch in epochs:
        found, passed = numbers(epoch.validation), subject.run.passed(epoch.time)
        rows.append(
            [
                *_who(subject, subjects),
                epoch.epoch,
                passed / seconds,
                *([_paid(subject.run, passed)] if paid else []),
                epoch.loss,
                *(found.get(measure) for measure in measures),
            ]
        )
    columns = [
        *_who_columns(subjects),
        Column(key="epoch", head="epoch"),
        Column(key="time", head=f"time, {unit}", form=",.2f"),
        *([Column(key="dollars", head="cost so far, $", form=",.2f")] if paid else []),
        Column(key="training_loss", head="loss, training rows", form=".4f"),
        *measure_columns([each if each != "loss" else "loss, validation rows" for each in measures]),
    ]
    axes = [
        (counted("epoch", "epoch", max(epoch.epoch for _, epoch in epochs)), "epoch"),
        (number("time", f"time since the start, {unit}"), "time"),
        *([(number("dollars", "cost so far, $"), "dollar")] if paid else []),
    ]
    drawn = [(place, measure) for place, measure in enumerate(measures) if measure != "loss"][:2]
    plots = [
        Plot(
            title=f"{measure.capitalize().replace('_', ' ')} by {short}",
            description=f"The {measure} on the validation rows after each epoch against the {short}, a line a run.",
            spec=_curves(axis, measured(f"measure_{place}", measure.replace("_", " ")), subjects),
        )
        for place, measure in drawn
        for axis, short in axes
    ]
    text = "Measures are those on the validation rows after each epoch."
    return Figure(
        key="epochs", title="Epochs", columns=columns, rows=rows, plots=plots, text=text, folded=len(rows) > 40
    )


def _curves(x: Spec, y: Spec, subjects: Sequence[Subject]) -> Spec:
    names = list(dict.fromkeys(each.group for each in subjects))
    spec = lines(x, y, names, by="group" if _are_grouped(subjects) else "run")
    return {**spec, "encoding": {**spec["encoding"], "detail": name("run")}}


def _are_grouped(subjects: Sequence[Subject]) -> bool:
    return any(each.group != each.name for each in subjects)


def _who(subject: Subject, subjects: Sequence[Subject]) -> list[Value]:
    """The cells that say whose row it is."""
    return [subject.group, subject.name] if _are_grouped(subjects) else [subject.name]


def _who_columns(subjects: Sequence[Subject]) -> list[Column]:
    group = [Column(key="group", head="drawn as")] if _are_grouped(subjects) else []
    return [*group, Column(key="run", head="run")]


def _paid(run: RunRecord, passed: float) -> float | None:
    """Dollars until then, as if each second of the run cost the same."""
    whole = sum(each.until - each.start.time for each in run.sessions)
    return None if run.dollars is None else run.dollars * passed / whole if whole else 0.0


class _Matrix(BaseModel):
    """The confusion matrix of a record: names of classes, and rows by label and prediction."""

    classes: Annotated[list[str], Field(min_length=2)]
    counts: list[list[Count]]


def _matrix(run: RunRecord) -> _Matrix | None:
    """That of a run's test rows; None where it has none that fits its classes."""
    try:
        found = _Matrix.model_validate(run.test.measures.get("confusion") if run.test else None)
    except ValidationError:
        return None
    sides = {len(found.counts), *map(len, found.counts)}
    return found if sides == {len(found.classes)} else None


def _confusion(subject: Subject, matrix: _Matrix, *, several: bool) -> Figure:
    classes, counts = matrix.classes, matrix.counts
    rows: list[list[Value]] = [
        [classes[label], classes[prediction], count, count / sum(row) if sum(row) else 0.0]
        for label, row in enumerate(counts)
        for prediction, count in enumerate(row)
    ]
    few = len(classes) <= _MOST_CLASSES_DRAWN
    text = "The stronger the colour, the more of the label's rows have that prediction."
    if not few:
        wrong = [row for row in rows if row[0] != row[1] and row[2]]
        rows = sorted(wrong, key=lambda row: -(row[2] if isinstance(row[2], int) else 0))[:_MOST_PAIRS]
        text = f"The {len(rows)} most frequent mistakes of {len(classes)} classes."
    of = f", {subject.name}" if several else ""
    title = f"Confusion on the test rows{of}"
    plot = Plot(
        title=title,
        description="A square for each label and prediction of the test rows, of a stronger colour the larger the "
        "share of the label's rows with that prediction.",
        spec=_matrix_spec(classes, most=max(map(max, counts))),
    )
    return Figure(
        key=key_of("confusion", subject.name) if several else "confusion",
        title=title,
        columns=[
            Column(key="label", head="label"),
            Column(key="prediction", head="prediction"),
            Column(key="rows", head="rows", form=","),
            Column(key="share", head="share of the label", form=".1%"),
        ],
        rows=rows,
        plots=[plot] if few else [],
        text=text,
    )


def _matrix_spec(classes: Sequence[str], *, most: int) -> Spec:
    """`most`: the largest number; numbers are written where there is a place for it."""
    shades = {"field": "share", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0.04, 0.6]}}
    layers: list[Spec] = [
        {"mark": {"type": "rect", "color": "var(--c1)"}, "encoding": {"opacity": {**shades, "legend": None}}}
    ]
    if len(classes) * len(f"{most:,}") <= _MOST_LETTERS_WRITTEN:
        layers.append({"mark": {"type": "text", "aria": False}, "encoding": {"text": {"field": "rows", "format": ","}}})
    return {
        "height": HEIGHT + (80 if are_upright(classes) else 0),
        "encoding": {
            "x": columns_of("prediction", "prediction", classes),
            "y": rows_of("label", classes, "label", letters=14),
        },
        "layer": layers,
    }
