"""What is said of a model's answers together: scores, malformed records, and why there are no scores.

The easy mistake is to score what was not answered: a text without a known word is neither right nor wrong, and is
counted by itself.
"""

import json
import sys
from typing import TYPE_CHECKING, Any

from bootstrap.cli.output import percent, say, table
from corpus.display import plural
from jobs.errors import FinalError
from trainer.classification import metrics
from trainer.classification.metrics import Confusion

if TYPE_CHECKING:
    from bootstrap.prediction.answers import Answers
    from bootstrap.prediction.texts import TextFiles
    from corpus.reading.tally import Tally


def report(
    tally: "Tally", answers: "Answers", given: "TextFiles | None" = None, *, threshold: float, as_json: bool
) -> None:
    """Say on standard error what there is to be said of answers to the texts of files, or of standard input."""
    confusion, why = _compared(given, answers) if given else (None, None)
    if as_json:
        print(json.dumps({"threshold": threshold, **_content(tally, answers, confusion, why)}), file=sys.stderr)  # noqa: T201
        return
    if confusion:
        say(_scores(confusion, answers.unknown))
    if tally.counts["malformed"]:
        say(f"malformed, without an answer: {malformed(tally)}")
    if why is not None:
        say(f"no scores: {why}")


def malformed(tally: "Tally") -> str:
    """How many records are malformed, and where the first of each reason are."""
    places = [f"  {each.reason}: {each.file}, line {each.line}: {each.begins}" for each in tally.malformed_lines()]
    return "\n".join([f"{tally.counts['malformed']:,} of {plural(tally.counts['lines'], 'record')}", *places])


def _compared(given: "TextFiles", answers: "Answers") -> tuple[Confusion | None, str | None]:
    """The answers beside what the files say, or why there is nothing; of plain text that goes without saying."""
    if given.not_compared is not None:
        plain = all(source.format.kind == "text" for source in given.understanding.sources)
        return None, None if plain else given.not_compared
    try:
        return answers.confusion(given.settings), None
    except FinalError as error:
        return None, str(error)


def _content(tally: "Tally", answers: "Answers", confusion: Confusion | None, why: str | None) -> dict[str, Any]:
    return {
        "records": tally.counts["lines"],
        "malformed": tally.counts["malformed"],
        "malformed_lines": [vars(place) for place in tally.malformed_lines()],
        "unknown": answers.unknown,
        "scores": {**metrics.measures(confusion), "confusion": vars(confusion)} if confusion else None,
        "not_scored": why,
    }


def _scores(confusion: Confusion, unknown: int) -> str:
    named = {name: percent(value) for name, value in metrics.measures(confusion).items()}
    rows = [
        ("scored", plural(confusion.rows, "text") + (f"; left out: {unknown:,} unknown" if unknown else "")),
        ("accuracy", f"{named['accuracy']} (always the majority: {named['majority']})"),
        ("balanced accuracy", named["balanced_accuracy"]),
        ("F1 positive, negative", f"{metrics.f1_positive(confusion):.3f}, {metrics.f1_negative(confusion):.3f}"),
    ]
    matrix = [
        ("positive", f"{confusion.true_positive:,}", f"{confusion.false_negative:,}"),
        ("negative", f"{confusion.false_positive:,}", f"{confusion.true_negative:,}"),
    ]
    heads = ("the files say", "called positive", "called negative")
    return "\n\n".join((table(rows, stream=sys.stderr), table(matrix, heads, right=(1, 2), stream=sys.stderr)))
