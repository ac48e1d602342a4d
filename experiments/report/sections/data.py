"""What the data are: ratings before and after duplicates are taken out, classes, lengths, words."""

from collections.abc import Sequence
from dataclasses import replace

from common.display import length_bins
from experiments.report.drawing import HEIGHT
from experiments.report.figures import Column, Figure, Plot, Section, Value, key_of
from experiments.report.specs import SHORT, are_upright, bars, coloured, columns_of, name, number, rows_of
from experiments.report.subjects import DataCounts, Subject

_MOST_DATASETS, _MOST_CLASSES, _MOST_WORDS = 4, 20, 20
_ALL, _DISTINCT = "all texts", "distinct texts"


def data(found: Sequence[DataCounts], subjects: Sequence[Subject]) -> Section:
    learnt = {each.run.latest.digest for each in subjects}
    figures: list[Figure] = []
    for each in found[:_MOST_DATASETS]:
        figures += _figures(each, one=len(found) == 1, learnt=each.digest in learnt if subjects else None)
    left_out = len(found) - _MOST_DATASETS
    text = f"The first {_MOST_DATASETS} datasets are shown; {left_out} more are left out." if left_out > 0 else ""
    return Section(key="data", title="The data", figures=figures, text=text)


def _figures(data: DataCounts, *, one: bool, learnt: bool | None) -> list[Figure]:
    counts, of = data.counts, "" if one else f", {data.folder.resolve().name}"
    totals: list[list[Value]] = [
        ["lines", counts.lines],
        ["malformed", counts.malformed],
        ["empty", counts.empty],
        ["texts", counts.texts],
        ["distinct texts", counts.distinct],
        ["rows to train on", counts.train],
        ["rows to test on", counts.test],
        ["words kept", counts.tokens],
        ["of these unknown", counts.unknown_tokens],
    ]
    text = {True: "Runs of this report learnt from it.", False: "No run of this report learnt from it.", None: ""}
    figures = [
        Figure(
            key=key_of("data", of),
            title=f"Dataset{of}",
            columns=[Column(key="what", head="what"), Column(key="number", head="number", form=",")],
            rows=totals,
            text=f"Its digest is {(data.digest or 'not known')[:12]}. {text[learnt]}".strip(),
        )
    ]
    if counts.ratings.before:
        figures.append(
            _before_and_after("ratings", "rating", of, _changes(counts.ratings.before, counts.ratings.after))
        )
    classes = {str(label): each for label, each in enumerate(data.classes)}
    labels = counts.labels
    frequent = sorted(labels.after, key=lambda label: -labels.after[label])[:_MOST_CLASSES]
    shown = [
        (classes.get(label, label), labels.before.get(label, 0), labels.after[label])
        for label in labels.after
        if label in frequent
    ]
    part = f"The {len(shown)} most frequent of {len(labels.after)} classes." if len(shown) < len(labels.after) else ""
    figures.append(replace(_before_and_after("classes", "class", of, shown), text=part))
    if lengths := length_bins(counts.lengths):
        figures.append(_bars("lengths", "Lengths of texts", "words kept of a text", "texts", of, lengths))
    words = dict(counts.frequent_words[:_MOST_WORDS])
    if words:
        figures.append(_bars("words", "Most frequent words", "word", "occurrences", of, words))
    return figures


def _changes(before: dict[str, int], after: dict[str, int]) -> list[tuple[str, int, int]]:
    return [(each, number_, after.get(each, 0)) for each, number_ in before.items()]


def _before_and_after(key: str, what: str, of: str, found: Sequence[tuple[str, int, int]]) -> Figure:
    """A histogram of all texts beside the distinct ones."""
    columns = [
        Column(key="name", head=what),
        Column(key="before", head=_ALL, form=","),
        Column(key="after", head=_DISTINCT, form=","),
    ]
    sides = (_ALL, _DISTINCT)
    spec = {
        "transform": [
            {"fold": ["before", "after"], "as": ["side", "texts"]},
            {"calculate": f"datum.side == 'before' ? '{_ALL}' : '{_DISTINCT}'", "as": "of"},
        ],
        "height": HEIGHT + (80 if are_upright([each for each, *_ in found]) else 0),
        "mark": {"type": "bar"},
        "encoding": {
            "x": columns_of("name", what, [each for each, *_ in found]),
            "xOffset": name("of", order=sides),
            "y": number("texts", "texts", zero=True, axis=SHORT),
            "color": coloured("of", sides)["color"],
        },
    }
    plot = Plot(
        title=f"Texts by {what}{of}",
        description=f"Two bars for each {what}: all texts, and the distinct ones.",
        spec=spec,
    )
    return Figure(key=key_of(key, of), title=f"Texts by {what}{of}", columns=columns, rows=list(found), plots=[plot])


def _bars(key: str, title: str, what: str, counted: str, of: str, found: dict[str, int]) -> Figure:
    spec = {
        "mark": {"type": "bar"},
        "encoding": {
            "y": rows_of("name", list(found)),
            "x": number("number", counted, zero=True, axis=SHORT),
        },
        **bars(16),
    }
    return Figure(
        key=key_of(key, of),
        title=f"{title}{of}",
        columns=[Column(key="name", head=what), Column(key="number", head=counted, form=",")],
        rows=[[each, count] for each, count in found.items()],
        plots=[Plot(title=f"{title}{of}", description=f"A bar for each: {counted} by {what}.", spec=spec)],
    )
