"""The scores of a classifier, for all commands that show some, and the report of `shoal predict` on its predictions."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bootstrap.cli.output import Part, Result, Rows, filled_rows, print_result, wants_json
from common.display import plural
from common.errors import DataError
from trainer.classification import metrics
from trainer.classification.metrics import Confusion

if TYPE_CHECKING:
    from bootstrap.prediction.answers import AnswerCounts
    from bootstrap.prediction.texts import TextFiles
    from corpus.reading.tally import Tally

SCORES: Rows = {
    "accuracy": "{accuracy:.1%} (always the majority: {majority:.1%})",
    "balanced accuracy": "{balanced_accuracy:.1%}",
    "macro-F1": "{macro_f1:.3f}",
    "F1 positive, negative": "{f1_positive:.3f}, {f1_negative:.3f}",
    "log loss": "{log_loss:.3f}",
    "calibration error": "{calibration_error:.1%}",
}
_MOST_CLASSES, _MOST_LETTERS = 5, 10
"""A confusion matrix of more classes is not shown, and longer names of classes are cut, to fit 80 columns."""


def confusion_rows(matrix: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows of a table, from `Confusion.plain`; none where there are many classes."""
    if len(matrix["classes"]) > _MOST_CLASSES:
        return []
    names = [_cut(name) for name in matrix["classes"]]
    widths = [
        max(len(name), *(len(f"{number:,}") for number in column))
        for name, column in zip(names, zip(*matrix["counts"], strict=True), strict=True)
    ]

    def aligned(cells: Sequence[str]) -> str:
        return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))

    lines = [
        (f"  {name}", aligned([f"{number:,}" for number in counts]))
        for name, counts in zip(names, matrix["counts"], strict=True)
    ]
    return [("predicted as", aligned(names)), *lines]


def score_rows(
    texts: int, scores: Mapping[str, Any], matrix: Mapping[str, Any], **left_out: int
) -> list[tuple[str, str]]:
    """Rows of a table: the number of scored texts, those `left_out` by reason, the scores, and the confusion matrix."""
    reasons = {"unknown": "without a word that the model knows", "other_labels": "without a known rating or label"}
    out = ", ".join(f"{number:,} {reasons.get(name, name)}" for name, number in left_out.items() if number)
    scored = plural(texts, "text") + (f"; left out: {out}" if out else "")
    return [("scored", scored), *filled_rows(SCORES, scores), *confusion_rows(matrix)]


def report(tally: "Tally", answers: "AnswerCounts", files: "TextFiles | None" = None, *, threshold: float) -> None:
    """Print the report on predictions on standard error; `files` is None for standard input."""
    confusion, why = _compared(files, answers) if files else (None, None)
    content = {
        "threshold": threshold,
        "records": tally.counts["lines"],
        "malformed": tally.counts["malformed"],
        "malformed_lines": [vars(place) for place in tally.malformed_lines()],
        "unknown": answers.unknown,
        "other_labels": answers.others,
        "scores": None,
        "not_scored": why,
    }
    parts: list[Part] = []
    if confusion:
        matrix, scores = confusion.plain(answers.classes or metrics.TWO_CLASSES), metrics.measures(confusion)
        content["scores"] = {**scores, "confusion": matrix}
        parts.append(score_rows(confusion.rows, scores, matrix, unknown=answers.unknown, other_labels=answers.others))
    elif answers.unknown:
        parts.append(f"unknown: {plural(answers.unknown, 'text')} without a word that the model knows")
    if tally.counts["malformed"]:
        parts.append(f"malformed, without an answer: {malformed(tally)}")
    if why is not None:
        parts.append(f"no scores: {why}")
    if parts or wants_json():
        print_result(Result(content, parts), sys.stderr)


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
    except DataError as error:
        return None, str(error)


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 2]}.."
