"""Sections of a report, as data: the tables of each section, and the plots of each table."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

from common.json_values import finite_numbers
from experiments.records import ParsedRecord
from experiments.report.tables import (
    MEASURES,
    Column,
    Plot,
    Row,
    Section,
    Table,
    filled_table,
    shortened,
    split_range,
    upright,
)
from experiments.table import Group, common_measures, settings_text, short_names
from experiments.table import Row as RunRow
from trainer.output.lines import Step

MAX_LINES = 8
"""Maximum number of groups, or ranks, that have a line in a plot."""
_MAX_RUNS, _MAX_CLASSES = 4, 20
"""Maximum number of runs with details, and maximum number of classes of a run."""
_MAX_MATRIX, _MAX_MISTAKES = 10, 200
"""Largest confusion matrix that is shown, in classes, and largest number of wrong predictions."""
_MAX_NAME = 36
_WINDOWS = 10
"""The loss is the mean over this fraction of the recorded steps."""
_MAX_POINTS, _MIN_POINTS = 160, 8
"""Maximum number of points on the lines of all runs together, and minimum number for each run."""
_TRAINING, _VALIDATION = "training", "validation"
"""Rows on which a loss was computed."""

_RUN = Column("run", "run")
_DRAWN_AS = Column("drawn_as", "drawn as")
_SINCE = Column("time", "time since start", ",.2f", is_time=True)
_MEASURES = Column(MEASURES, "", ".4f")
_OF_ONE_RUN = (
    Column("model", "model"),
    Column("rows", "training rows", ","),
    Column("epochs", "epochs"),
    Column("global_batch", "global batch", ","),
    Column("on", "on"),
    Column("accuracy_interval", "accuracy, 95% interval"),
    Column("balanced", "balanced", ".0%"),
)
"""Further columns for a single run. With several runs, the settings that differ are in one column."""
_RESULTS = (
    _MEASURES,
    Column("seconds", "training, s", ",.1f"),
    Column("least", "least, s", ",.1f"),
    Column("most", "most, s", ",.1f"),
    Column("rows_per_second", "rows/s", ",.0f"),
    Column("share_of_ideal", "share of ideal", ".0%"),
    Column("dollars", "cost, $", ",.2f"),
    Column("speed_up", "speed-up", ".2f"),
    Column("efficiency", "efficiency", ".0%"),
)
_LOSS = (
    _DRAWN_AS,
    _RUN,
    Column("of", "rows"),
    Column("step", "step", ","),
    Column("epoch", "epoch", ".2f"),
    _SINCE,
    Column("loss", "loss", ".4f"),
)
_CLASS_SCORES = (
    _RUN,
    Column("class", "class"),
    Column("rows", "test rows", ","),
    Column("precision", "precision", ".1%"),
    Column("recall", "recall", ".1%"),
    Column(MEASURES, "predicted as ", ","),
    Column("taken_for", "most often predicted as"),
)
_MISTAKES = (
    _RUN,
    Column("label", "class"),
    Column("prediction", "predicted as"),
    Column("probability", "probability", ".1%"),
    Column("words", "first words of the row"),
)


class _Subject(NamedTuple):
    """Run with the names that the page shows. The runs of a group have lines of the same colour."""

    run: ParsedRecord
    name: str
    group: str

    @property
    def identity(self) -> Row:
        drawn_as = self.group if self.group != self.name else None
        return {"drawn_as": drawn_as, "group": self.group, "run": self.name}


def sections(groups: Sequence[Group], rows: Sequence[RunRow]) -> list[Section]:
    """Return the sections in the order of the page. `rows` are the rows of the groups. Empty sections are left out."""
    group_names = _shorten_all([group.name for group in groups])
    runs = [(run, name) for group, name in zip(groups, group_names, strict=True) for run in group.runs]
    names = _shorten_all(short_names(run.folder for run, _ in runs))
    subjects = [_Subject(run, name, group) for (run, group), name in zip(runs, names, strict=True)]
    others = _OF_ONE_RUN if len(rows) == 1 else (Column("settings", "settings that differ"),)
    columns = (_RUN, Column("state", "state"), *_RESULTS, *others)
    table_of_runs = filled_table(_run_rows(rows, group_names), columns, key="runs", title="Runs")
    results = Section(
        key="runs",
        title="Results",
        text="Numbers of repeated runs are medians; measures and costs are means. Measures are on the test rows. For "
        "an unfinished run, they are on the validation rows after its latest epoch. The share of ideal is the rate "
        "divided by the sum of the rates that the ranks reach alone. Balanced is the rate divided by the sum of the "
        "rates at which the ranks computed during the run.",
        tables=[upright(table) if len(rows) == 1 else table for table in table_of_runs],
    )
    learning = Section(
        key="learning",
        title="Learning curves",
        text=f"The first {MAX_LINES} runs. Repeated runs have one colour. Time includes evaluation, but not pauses "
        "before a run was resumed.",
        tables=_curves([each for each in subjects if each.group in group_names[:MAX_LINES]]),
    )
    predictions = Section(
        key="predictions",
        title="Predictions",
        text=f"Predictions on the test rows, for the first {_MAX_RUNS} runs.",
        tables=_predictions(subjects[:_MAX_RUNS]),
    )
    shares = filled_table(
        _share_rows(subjects),
        (_RUN, Column("rank", "rank"), _SINCE, Column("share", "share", ".1%")),
        labels=2,
        key="shares",
        title="Shares of the ranks",
        plots=[Plot(title="Shares of the ranks", x="time", y="share", by="rank", each="run")],
        text=f"Share of the global batch for each rank over time, for the first {_MAX_RUNS} runs. With more than "
        f"{MAX_LINES} ranks: the smallest, median and largest share.",
    )
    ranks = Section(key="ranks", title="Ranks", tables=shares)
    return [each for each in (results, learning, predictions, ranks) if each.tables]


def _curves(subjects: Sequence[_Subject]) -> list[Table]:
    losses = filled_table(
        _loss_rows(subjects),
        _LOSS,
        labels=2,
        key="loss",
        title="Loss",
        plots=[Plot(title=f"Loss by {x}", x=x, y="loss", by="group", style="of") for x in ("epoch", "time")],
        text="The loss on the training rows is a moving mean over a tenth of the recorded steps, without the short "
        "last batch of an epoch. The broad, pale line is for the validation rows.",
    )
    measures = filled_table(
        _epoch_rows(subjects),
        (_DRAWN_AS, _RUN, Column("epoch", "epoch"), _SINCE, Column("dollars", "cost so far, $", ",.2f"), _MEASURES),
        labels=2,
        key="epochs",
        title="Measures by epoch",
        plots=[
            Plot(title="Measure by time", x="time", y="measure_0", by="group"),
            Plot(title="Measure by cost", x="dollars", y="measure_0", by="group"),
        ],
        text="Measures on the validation rows after each epoch. The plots show the first measure.",
    )
    return [*losses, *measures]


def _predictions(subjects: Sequence[_Subject]) -> list[Table]:
    scores = filled_table(
        _class_rows(subjects),
        _CLASS_SCORES,
        labels=2,
        key="class-scores",
        title="Precision and recall by class",
        text="The columns “predicted as” are the confusion matrix. The classes with the most wrong predictions are "
        f"first, at most {_MAX_CLASSES} of a run.",
    )
    mistakes = filled_table(
        _mistake_rows(subjects),
        _MISTAKES,
        labels=2,
        key="mistakes",
        title="Surest wrong predictions",
        text="The wrong predictions with the highest probability, for each class. A dataset does not hold the original "
        "texts: these are the words that it keeps of a text, and … stands for words outside the vocabulary.",
    )
    return [*scores, *mistakes]


def _shorten_all(names: Sequence[str]) -> list[str]:
    """Remove the middle of names that are too long for a plot. Different names remain different."""
    found: dict[str, str] = {}
    for name in names:
        short = shortened(name, _MAX_NAME)
        if name not in found:
            found[name] = short if short not in found.values() else f"{short} ({len(found) + 1})"
    return [found[name] for name in names]


def _run_rows(rows: Sequence[RunRow], names: Sequence[str]) -> Iterator[Row]:
    common = common_measures(rows)
    for row, name in zip(rows, names, strict=True):
        yield {
            **vars(row),
            **({} if row.ranks > 1 else {"share_of_ideal": None, "balanced": None}),
            "run": name,
            "on": ", ".join(filter(None, (row.devices, row.where))),
            "settings": settings_text(row.settings),
            "measures": _by_text({name: row.measures.get(name) for name in common}),
        }


def _by_text(measures: Mapping[str, Any]) -> dict[str, Any]:
    """Return measures by the names in the heads of tables."""
    return {name.replace("_", " "): value for name, value in measures.items()}


def _class_rows(subjects: Sequence[_Subject]) -> Iterator[Row]:
    """Yield each class of a run with its precision, recall and row of the confusion matrix, worst classes first."""
    for subject in subjects:
        if subject.run.confusion is None:
            continue
        names, matrix = subject.run.confusion
        each = zip(names, matrix.counts, matrix.right, matrix.occurrences, matrix.predictions, strict=True)
        for name, counts, right, there, predicted in sorted(each, key=lambda one: one[2] - one[3])[:_MAX_CLASSES]:
            wrong = [(number, other) for number, other in zip(counts, names, strict=True) if other != name and number]
            yield {
                "run": subject.name if len(subjects) > 1 else None,
                "class": name,
                "rows": there,
                "precision": right / predicted if predicted else None,
                "recall": right / there if there else None,
                "measures": dict(zip(names, counts, strict=True)) if len(names) <= _MAX_MATRIX else {},
                "taken_for": max(wrong)[1] if wrong and len(names) > _MAX_MATRIX else None,
            }


def _mistake_rows(subjects: Sequence[_Subject]) -> Iterator[Row]:
    for subject in subjects:
        for each in subject.run.mistakes[:_MAX_MISTAKES]:
            yield {"run": subject.name if len(subjects) > 1 else None, **vars(each)}


def _full_steps(run: ParsedRecord) -> list[Step]:
    """Return the steps that have at least half a global batch. Smaller steps, at ends of epochs, are too noisy."""
    return [step for step in run.steps if 2 * sum(step.split) >= run.latest.global_batch]


def _loss_rows(subjects: Sequence[_Subject]) -> Iterator[Row]:
    """Yield the points of each run's loss, on training rows first, then on validation rows."""
    most = max(_MIN_POINTS, _MAX_POINTS // max(1, len(subjects)))
    for subject in subjects:
        run = subject.run
        an_epoch = run.latest.steps / max(1, run.latest.epochs)
        for of, step, moment, loss in _loss_points(run, most, an_epoch):
            epoch = step / an_epoch if an_epoch else None
            point = {"of": of, "step": step, "epoch": epoch, "time": run.passed(moment), "loss": loss}
            yield {**subject.identity, **point}


def _loss_points(run: ParsedRecord, most: int, an_epoch: float) -> Iterator[tuple[str, int, float, float]]:
    """Yield points of a run's loss: at most `most` on training rows, and at most `most` on validation rows. A point is
    (kind of rows, step, seconds, loss). `an_epoch` is the number of steps per epoch."""
    full = _full_steps(run)
    for part in split_range(len(full), most):
        latest = full[part.stop - 1]
        window = max(len(part), -(-len(full) // _WINDOWS))
        yield _TRAINING, latest.step, latest.time, fmean(step.loss for step in full[: part.stop][-window:])
    found = [
        (epoch, loss) for epoch in run.epochs if (loss := finite_numbers(epoch.validation).get("loss")) is not None
    ]
    for part in split_range(len(found), most):
        epoch, loss = found[part.stop - 1]
        yield _VALIDATION, round(epoch.epoch * an_epoch), epoch.time, loss


def _epoch_rows(subjects: Sequence[_Subject]) -> Iterator[Row]:
    for subject in subjects:
        run = subject.run
        whole = run.passed(run.last)
        for epoch in run.epochs:
            measures, passed = finite_numbers(epoch.validation), run.passed(epoch.time)
            loss = {"loss, validation rows": measures.pop("loss")} if "loss" in measures else {}
            measures.pop("majority", None)
            yield {
                **subject.identity,
                "epoch": epoch.epoch,
                "time": passed,
                "dollars": run.dollars * passed / whole if run.dollars is not None and whole else None,
                "measures": {**_by_text(measures), "loss, training rows": epoch.loss, **loss},
            }


def _share_rows(subjects: Sequence[_Subject]) -> Iterator[Row]:
    """Yield the ranks' mean shares of the global batch over time. If there are many ranks, yield the smallest, the
    median and the largest share instead."""
    several = [each for each in subjects if each.run.latest.world_size > 1]
    for subject in several[:_MAX_RUNS]:
        run, count = subject.run, subject.run.latest.world_size
        kept = [step for step in _full_steps(run) if len(step.split) == count]
        for part in split_range(len(kept), _MAX_POINTS // min(count, MAX_LINES)):
            steps = kept[part.start : part.stop]
            whole = sum(sum(step.split) for step in steps)
            means = [sum(rows) / whole for rows in zip(*(step.split for step in steps), strict=True)]
            named = {f"rank {rank}": share for rank, share in enumerate(means)}
            if count > MAX_LINES:
                named = {"smallest share": min(means), "median share": median(means), "largest share": max(means)}
            for rank, share in named.items():
                yield {"run": subject.name, "rank": rank, "time": run.passed(steps[-1].time), "share": share}
