"""Rows of a report's tables. One function per table returns its rows, from the runs or from an experiment's result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from common.display import length_bins, plural
from experiments.records.comparing import common_measures, settings_text, table_of
from experiments.records.runs import RunRecord, full_steps, numbers
from experiments.report.subjects import MAX_LINES, DataCounts, ReportContent, Subject, groups
from experiments.report.tables import Row, split_range
from experiments.results import ExperimentResult
from trainer.classification.metrics import accuracy_interval

MAX_DATASETS, MAX_NAMES, MAX_RUNS = 4, 20, 4
"""Maximum numbers of datasets, of classes or words per dataset, and of runs that have plots of their ranks."""
_COLUMN_SETTINGS = ("model", "ranks", "devices", "rows", "epochs", "global_batch")
"""Settings that have a column of their own."""
_MAX_NOTES = 60
_MAX_MATRIX, _MAX_MISTAKES = 10, 200
"""Largest confusion matrix that is shown, in classes, and largest number of wrong predictions of a run."""
_WINDOWS = 10
"""The loss is the mean over this fraction of the recorded steps."""
INTERVAL = "accuracy, 95% interval"
_MAX_POINTS, _MIN_POINTS = 160, 8
"""Maximum number of points on the lines of all runs together, and minimum number for each run."""
TRAINING, VALIDATION = "training", "validation"
"""Rows on which a loss was computed."""


def run_rows(content: ReportContent) -> Iterator[Row]:
    runs = [each.run for each in content.subjects]
    measures = common_measures(runs)
    for subject, row in zip(content.subjects, table_of(runs, [each.name for each in content.subjects]), strict=True):
        rank_shares = {} if row.ranks > 1 else {"share_of_ideal": None, "balanced": None}
        yield {
            **vars(row),
            **rank_shares,
            "group": subject.group,
            "measures": _measures({name: row.measures.get(name) for name in measures}, interval_text(subject.run)),
            "settings": settings_text(
                {name: value for name, value in row.settings.items() if name not in _COLUMN_SETTINGS}
            ),
            "several_starts": row.starts if row.starts > 1 else None,
        }


def several_runs(content: ReportContent) -> Iterator[Row]:
    """Yield the runs. A single run has no table, because the page begins with `about_run`."""
    return run_rows(content) if len(content.subjects) > 1 else iter(())


def about_run(content: ReportContent) -> str:
    """Return a sentence on a single run: what it was trained on, and where. With several runs, return an empty text."""
    if len(content.subjects) != 1:
        return ""
    (run,) = table_of([content.subjects[0].run])
    rows = f"{run.rows:,} rows of dataset" if run.rows is not None else "dataset"
    places = ", ".join(filter(None, (run.devices, run.where)))
    starts = f", {run.starts} starts" if run.starts > 1 else ""
    return (
        f"Model {run.model}, trained on {rows} {run.data}: {plural(run.epochs, 'epoch')} with a global batch of "
        f"{run.global_batch:,}, on {places}, from {run.began} UTC{starts}."
    )


def interval_text(run: RunRecord) -> str | None:
    """Return the 95% interval of the run's accuracy, or None if it has no confusion matrix."""
    if run.confusion is None:
        return None
    low, high = accuracy_interval(run.confusion[1])
    return f"{low:.4f} to {high:.4f}"


def _measures(measures: Mapping[str, Any], interval: str | None = None) -> dict[str, Any]:
    """Return measures by the names in the heads of tables, with the interval after the accuracy."""
    found: dict[str, Any] = {}
    for name, value in measures.items():
        found[name.replace("_", " ")] = value
        if name == "accuracy" and interval:
            found[INTERVAL] = interval
    return found


def class_scores(content: ReportContent) -> Iterator[Row]:
    """Yield each class of a run with its precision, recall and row of the confusion matrix, worst classes first."""
    for subject in content.subjects[:MAX_RUNS]:
        if subject.run.confusion is None:
            continue
        names, matrix = subject.run.confusion
        each = zip(names, matrix.counts, matrix.right, matrix.occurrences, matrix.predictions, strict=True)
        worst = sorted(each, key=lambda one: one[2] - one[3])[:MAX_NAMES]
        for name, counts, right, there, predicted in worst:
            wrong = [(number, other) for number, other in zip(counts, names, strict=True) if other != name and number]
            yield {
                "run": subject.name if len(content.subjects) > 1 else None,
                "class": name,
                "rows": there,
                "precision": right / predicted if predicted else None,
                "recall": right / there if there else None,
                "measures": dict(zip(names, counts, strict=True)) if len(names) <= _MAX_MATRIX else {},
                "taken_for": max(wrong)[1] if wrong and len(names) > _MAX_MATRIX else None,
            }


def mistakes(content: ReportContent) -> Iterator[Row]:
    for subject in content.subjects[:MAX_RUNS]:
        for each in subject.run.mistakes[:_MAX_MISTAKES]:
            yield {"run": subject.name if len(content.subjects) > 1 else None, **vars(each)}


def notes(content: ReportContent) -> Sequence[Row]:
    """Yield the notes of runs: problems that did not stop a run."""
    return [
        {"run": each.name, "after": each.run.passed(note.time), "note": note.text}
        for each in content.subjects
        for note in each.run.notes
    ][:_MAX_NOTES]


def _drawn(content: ReportContent) -> list[Subject]:
    """Return the runs of the first MAX_LINES groups, for which lines are drawn."""
    return [each for group in list(groups(content.subjects).values())[:MAX_LINES] for each in group]


def _identity(subject: Subject) -> Row:
    drawn_as = subject.group if subject.group != subject.name else None
    return {"drawn_as": drawn_as, "group": subject.group, "run": subject.name}


def losses(content: ReportContent) -> Iterator[Row]:
    """Yield the points of each run's loss, on training rows first, then on validation rows."""
    subjects = _drawn(content)
    most = max(_MIN_POINTS, _MAX_POINTS // max(1, len(subjects)))
    for subject in subjects:
        run = subject.run
        an_epoch = run.latest.steps / max(1, run.latest.epochs)
        for of, step, moment, loss in _loss_points(run, most, an_epoch):
            epoch = step / an_epoch if an_epoch else None
            yield {
                **_identity(subject),
                "of": of,
                "step": step,
                "epoch": epoch,
                "time": run.passed(moment),
                "loss": loss,
            }


def _loss_points(run: RunRecord, most: int, an_epoch: float) -> Iterator[tuple[str, int, float, float]]:
    """Yield points of a run's loss: at most `most` on training rows, and at most `most` on validation rows. A point is
    (kind of rows, step, seconds, loss). `an_epoch` is the number of steps per epoch."""
    full = full_steps(run)
    for part in split_range(len(full), most):
        latest = full[part.stop - 1]
        window = max(len(part), -(-len(full) // _WINDOWS))
        yield TRAINING, latest.step, latest.time, fmean(step.loss for step in full[: part.stop][-window:])
    found = [(epoch, loss) for epoch in run.epochs if (loss := numbers(epoch.validation).get("loss")) is not None]
    for part in split_range(len(found), most):
        epoch, loss = found[part.stop - 1]
        yield VALIDATION, round(epoch.epoch * an_epoch), epoch.time, loss


def epochs(content: ReportContent) -> Iterator[Row]:
    for subject in _drawn(content):
        run = subject.run
        whole = run.passed(run.last)
        for epoch in run.epochs:
            measures, passed = numbers(epoch.validation), run.passed(epoch.time)
            loss = {"loss, validation rows": measures.pop("loss")} if "loss" in measures else {}
            measures.pop("majority", None)
            yield {
                **_identity(subject),
                "epoch": epoch.epoch,
                "time": passed,
                "dollars": run.dollars * passed / whole if run.dollars is not None and whole else None,
                "measures": {**_measures(measures), "loss, training rows": epoch.loss, **loss},
            }


def shares(content: ReportContent) -> Iterator[Row]:
    """Yield the ranks' mean shares of the global batch over time. If there are many ranks, yield the smallest, the
    median and the largest share instead."""
    several = [each for each in content.subjects if each.run.latest.world_size > 1]
    for subject in several[:MAX_RUNS]:
        run, count = subject.run, subject.run.latest.world_size
        kept = [step for step in full_steps(run) if len(step.split) == count]
        for part in split_range(len(kept), _MAX_POINTS // min(count, MAX_LINES)):
            steps = kept[part.start : part.stop]
            whole = sum(sum(step.split) for step in steps)
            means = [sum(rows) / whole for rows in zip(*(step.split for step in steps), strict=True)]
            named = {f"rank {rank}": share for rank, share in enumerate(means)}
            if count > MAX_LINES:
                named = {"smallest share": min(means), "median share": median(means), "largest share": max(means)}
            for rank, share in named.items():
                yield {"run": subject.name, "rank": rank, "time": run.passed(steps[-1].time), "share": share}


def about(found: ExperimentResult) -> str:
    """Return the text that introduces an experiment in the report."""
    of = found.kept.experiment
    baseline = f" Speed-ups are relative to {' or '.join(of.baseline)}." if of.baseline else ""
    runs = f" Each arm runs {of.repeats} times, in turn with the others." if of.repeats > 1 else ""
    return f"{of.about.rstrip('.')}.{baseline}{runs}"


def arms(found: ExperimentResult) -> Iterator[Row]:
    trains = found.kept.experiment.kind != "preprocessing"
    for arm in found.arms:
        rate, seconds = arm.rate and arm.rate.median, arm.seconds
        yield {
            **vars(arm),
            "arm": arm.name,
            "place": arm.place or ("this machine" if found.kept.is_local and arm.finished else None),
            "runs": arm.finished,
            "seconds": seconds and seconds.median,
            "least": seconds.least if seconds and arm.finished > 1 else None,
            "most": seconds.most if seconds and arm.finished > 1 else None,
            "rows_per_second": rate if trains else None,
            "mb_per_second": None if trains or rate is None else rate / 1e6,
            "kilobytes_a_step": None if arm.bytes_a_step is None else arm.bytes_a_step / 1e3,
            "ideal": arm.speed_up / arm.efficiency if arm.efficiency and arm.speed_up else None,
        }


def measures_of_arms(found: ExperimentResult) -> Iterator[Row]:
    for arm in found.arms:
        if arm.measures or arm.words:
            yield {
                "arm": arm.name,
                **{f"{name}_of_words": value for name, value in arm.words.items()},
                "measures": _measures(arm.measures),
            }


def datasets(content: ReportContent) -> Iterator[Row]:
    learned = [each.run.latest.digest for each in content.subjects]
    for name, data in _data(content):
        runs = sum(digest == data.digest for digest in learned) if learned else None
        yield {**dict(data.counts), "dataset": name, "digest": (data.digest or "not known")[:12], "learned": runs}


def _data(content: ReportContent) -> Iterator[tuple[str | None, DataCounts]]:
    """Yield the name and the counts of each dataset. A single dataset has no name."""
    for each in content.data[:MAX_DATASETS]:
        yield each.name if len(content.data) > 1 else None, each


def _counted(content: ReportContent, found: Callable[[DataCounts], Mapping[str, Any]]) -> Iterator[Row]:
    for name, data in _data(content):
        for each, number in found(data).items():
            numbers = number if isinstance(number, dict) else {"number": number}
            yield {"dataset": name, "name": each, **numbers}


def _before_and_after(
    before: Mapping[str, int], after: Mapping[str, int], names: Sequence[str]
) -> dict[str, dict[str, int]]:
    return {name: {"before": before.get(name, 0), "after": after.get(name, 0)} for name in names}


def ratings(content: ReportContent) -> Iterator[Row]:
    def found(data: DataCounts) -> Mapping[str, Any]:
        counted = data.counts.ratings
        return _before_and_after(counted.before, counted.after, list(counted.before))

    return _counted(content, found)


def classes(content: ReportContent) -> Iterator[Row]:
    def found(data: DataCounts) -> Mapping[str, Any]:
        counted, named = data.counts.labels, {str(label): name for label, name in enumerate(data.classes)}
        frequent = sorted(counted.after, key=lambda label: -counted.after[label])[:MAX_NAMES]
        both = _before_and_after(counted.before, counted.after, [label for label in counted.after if label in frequent])
        return {named.get(label, label): each for label, each in both.items()}

    return _counted(content, found)


def lengths(content: ReportContent) -> Iterator[Row]:
    return _counted(content, lambda data: length_bins(data.counts.lengths))


def words(content: ReportContent) -> Iterator[Row]:
    return _counted(content, lambda data: dict(data.counts.frequent_words[:MAX_NAMES]))
