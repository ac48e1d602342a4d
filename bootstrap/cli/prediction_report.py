"""The report on a model's predictions together: scores, malformed records, and why there are no scores."""

import json
import sys
from typing import TYPE_CHECKING, Any

from bootstrap.cli.confusion import confusion_rows
from bootstrap.cli.output import percent, say, table
from common.display import plural
from common.errors import FinalError
from trainer.classification import metrics
from trainer.classification.metrics import Confusion

if TYPE_CHECKING:
    from bootstrap.prediction.answers import AnswerCounts
    from bootstrap.prediction.texts import TextFiles
    from corpus.reading.tally import Tally


def report(
    tally: "Tally", answers: "AnswerCounts", files: "TextFiles | None" = None, *, threshold: float, as_json: bool
) -> None:
    """Print the report on standard error; `files` is None for standard input."""
    confusion, why = _compared(files, answers) if files else (None, None)
    if as_json:
        print(json.dumps({"threshold": threshold, **_content(tally, answers, confusion, why)}), file=sys.stderr)  # noqa: T201
        return
    if confusion:
        say(_scores(confusion, answers))
    elif answers.unknown:
        say(f"unknown: {plural(answers.unknown, 'text')} without a word that the model knows")
    if tally.counts["malformed"]:
        say(f"malformed, without an answer: {malformed(tally)}")
    if why is not None:
        say(f"no scores: {why}")


def malformed(tally: "Tally") -> str:
    """How many records are malformed, and where the first ones of each reason are."""
    places = [f"  {each.reason}: {each.file}, line {each.line}: {each.begins}" for each in tally.malformed_lines()]
    return "\n".join([f"{tally.counts['malformed']:,} of {plural(tally.counts['lines'], 'record')}", *places])


def _compared(files: "TextFiles", answers: "AnswerCounts") -> tuple[Confusion | None, str | None]:
    """The predictions beside the files' labels, or why there are none; plain text needs no reason."""
    if files.not_compared is not None:
        plain = all(source.format.kind == "text" for source in files.understanding.sources)
        return None, None if plain else files.not_compared
    try:
        return answers.confusion(files.settings), None
    except FinalError as error:
        return None, str(error)


def _content(tally: "Tally", answers: "AnswerCounts", confusion: Confusion | None, why: str | None) -> dict[str, Any]:
    return {
        "records": tally.counts["lines"],
        "malformed": tally.counts["malformed"],
        "malformed_lines": [vars(place) for place in tally.malformed_lines()],
        "unknown": answers.unknown,
        "other_labels": answers.others,
        "scores": {**metrics.measures(confusion), "confusion": _matrix(confusion, answers)} if confusion else None,
        "not_scored": why,
    }


def _matrix(confusion: Confusion, answers: "AnswerCounts") -> dict[str, Any]:
    return confusion.plain(answers.classes) if answers.classes else _cells(confusion)


def _cells(confusion: Confusion) -> dict[str, int]:
    (true_negative, false_positive), (false_negative, true_positive) = confusion.counts
    return {
        "true_positive": true_positive,
        "false_positive": false_positive,
        "false_negative": false_negative,
        "true_negative": true_negative,
    }


def _scores(confusion: Confusion, answers: "AnswerCounts") -> str:
    measures = {name: percent(value) for name, value in metrics.measures(confusion).items()}
    out = [
        f"{number:,} {what}"
        for number, what in ((answers.unknown, "unknown"), (answers.others, "without a known rating or label"))
        if number
    ]
    rows = [
        ("scored", plural(confusion.rows, "text") + (f"; left out: {', '.join(out)}" if out else "")),
        ("accuracy", f"{measures['accuracy']} (always the majority: {measures['majority']})"),
        ("balanced accuracy", measures["balanced_accuracy"]),
    ]
    if answers.classes:
        rows.append(("macro-F1", f"{metrics.macro_f1(confusion):.3f}"))
        return table([*rows, *confusion_rows(_matrix(confusion, answers))], stream=sys.stderr)
    f1 = f"{metrics.f1_positive(confusion):.3f}, {metrics.f1_negative(confusion):.3f}"
    cells = {name: f"{number:,}" for name, number in _cells(confusion).items()}
    matrix = [
        ("positive", cells["true_positive"], cells["false_negative"]),
        ("negative", cells["false_positive"], cells["true_negative"]),
    ]
    heads = ("the files say", "called positive", "called negative")
    scores = table([*rows, ("F1 positive, negative", f1)], stream=sys.stderr)
    return "\n\n".join((scores, table(matrix, heads, right=(1, 2), stream=sys.stderr)))
