"""The lines in which `shoal predict` gives its answers, and the file or the standard output that they go to."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bootstrap.cli.output import wants_json
from common.errors import ShoalError
from corpus.reading.storage import check_writable, writable

if TYPE_CHECKING:
    from trainer.classification.labelling import Prediction

# Characters that would end the line of an answer, divide it, or be a command to the terminal.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class AnswerForm:
    """How answers are written: columns divided by tabs, or JSON objects."""

    def __init__(self, classes: Sequence[str], *, probabilities: bool, keep: Sequence[str]) -> None:
        """`classes`: the names of a model's classes, by label; `keep`: the names of the fields that are kept.

        With `probabilities` an answer has those of all classes.
        """
        self._names, self._probabilities, self._keep = classes, probabilities, keep
        self._line = self._json if wants_json() else self._columns

    def write(
        self,
        out: TextIO,
        texts: Sequence[str],
        predictions: "Sequence[Prediction]",
        kept: Sequence[Sequence[object]] = (),
    ) -> None:
        """Write a line for each text; `kept` has the values of the fields for each, or nothing."""
        out.write("".join(map(self._line, texts, predictions, kept or repeat(()))))
        out.flush()

    def _json(self, text: str, prediction: "Prediction", kept: Sequence[object]) -> str:
        answer: dict[str, Any] = {"label": self._name(prediction), "probability": round(prediction.probability, 4)}
        if self._probabilities:
            rounded = (round(each, 4) for each in prediction.probabilities)
            answer["probabilities"] = dict(zip(self._names, rounded, strict=True))
        answer["text"] = text
        if self._keep:
            answer["fields"] = dict(zip(self._keep, kept, strict=True))
        return f"{json.dumps(answer, default=_as_text)}\n"

    def _columns(self, text: str, prediction: "Prediction", kept: Sequence[object]) -> str:
        numbers = prediction.probabilities if self._probabilities else (prediction.probability,)
        cells = [self._name(prediction), *(f"{number:.4f}" for number in numbers), *map(_cell, kept), text]
        return "\t".join([_UNPRINTABLE.sub(" ", cell) for cell in cells]) + "\n"

    def _name(self, prediction: "Prediction") -> str:
        label = prediction.label
        return "unknown" if label is None else self._names[label] if isinstance(label, int) else label


@contextmanager
def answer_file(output: str | None) -> Iterator[TextIO]:
    """What answers are written to: standard output, or a file at an address, which appears whole or not at all.

    Raises ShoalError or DataError where it cannot be written.
    """
    if output is None:
        yield sys.stdout
        return
    if output.endswith("/") or Path(output).is_dir():
        raise ShoalError(f"{output} is a folder; name a file by --output")
    check_writable(output)
    try:
        with writable(output) as path, path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise ShoalError(f"cannot write {output}: {error.strerror or error}; choose another --output") from error


def _cell(value: object) -> str:
    """A value of a field as text: a string as it is, nothing for a missing one, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=_as_text)


def _as_text(value: object) -> str:
    """A value that JSON does not have, such as a date of Parquet, as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
