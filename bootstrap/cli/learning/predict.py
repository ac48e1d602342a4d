"""`shoal predict`: texts in, a label and a probability a line out, and scores where files have ratings or labels.

Do not print anything else on standard output, because programs read it: it has one line for each text, in their order.
Scores and warnings go to standard error.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from bootstrap.cli.command import command, described_options, option
from bootstrap.cli.input_options import NOTES, read_reading_options, reading_options, require_s3
from bootstrap.cli.learning.scores import malformed, report
from bootstrap.cli.output import print_warning, wants_json
from bootstrap.prediction.model import open_model, rating_settings
from bootstrap.progress import Bars
from common.errors import DataError, ShoalError, UsageError
from corpus.reading.inputs.labels import list_values
from corpus.reading.storage import check_writable, writable
from jobs.job_settings import RATING_SCALE

if TYPE_CHECKING:
    from bootstrap.prediction.answers import AnswerCounts
    from bootstrap.prediction.texts import TextFiles
    from corpus.reading.tally import Tally
    from trainer.classification.labelling import Prediction
    from trainer.classification.trained_model import TrainedModel

RATING_OPTIONS = tuple(
    replace(each, default=None, text=f"{each.text} (default: as the model was trained)") if each.default else each
    for each in RATING_SCALE
)
_RATING_NAMES = tuple(each.name for each in RATING_OPTIONS)
# Characters that would end the line of an answer, divide it, or be a command to the terminal.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_EXAMPLES = """\
\b
Examples:
  echo 'broke after a week' | shoal predict --model results/model
      a text a line, from standard input
  shoal predict --model results/model reviews/*.json.gz >labels.tsv
      files as `shoal preprocess` reads them; scores where they have
      ratings or labels
  shoal predict --model results/model new.csv --text-field comment --json
      fields of other names
  shoal predict --model s3://bucket/model new.csv --keep id --output new.tsv
      a model on S3; a field of the input beside each answer, in a file
"""


@command(
    help="""\
Read texts, and print a line for each: its label, the probability that it is
positive, and the text. With a model of other classes the probability is that
of the label. A text without a word that the model knows is 'unknown';
these are counted at the end.

Files may have all formats that `shoal preprocess` reads, compressed or not:
JSON lines, CSV, TSV, Parquet, fastText; in other files each line is a text.
Where files have ratings or labels, the predictions are compared with them:
accuracy, F1 and confusion matrix, on standard error. A text without one, or
with one that the model does not know, is counted, and not scored. Malformed
records get no line; they are counted on standard error.
""",
    epilog=_EXAMPLES,
    notes={"How it is read": NOTES["How it is read"]},
    json="print a JSON object a line; the last one, on standard error, has the scores",
)
@option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="DIR_OR_S3",
    help="the output of `shoal train` or `shoal export`; a path or s3://...",
)
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(),
    metavar="[FILE]...",
    help="files, folders, patterns in quotes or s3://... (default: standard input, a text a line)",
)
@option(
    "--threshold",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="with two classes: call a text positive above this probability (default: the model's, which is 0.5 unless "
    "it was trained with --metric f1-macro)",
)
@option("--probabilities", is_flag=True, help="print the probability of every class, in the order of the labels")
@option(
    "--keep",
    several=True,
    metavar="FIELD...",
    help="fields of the input to print beside each answer; names or, of columns without names, numbers from 1",
)
@option(
    "--output",
    type=click.Path(),
    metavar="FILE_OR_S3",
    help="write the answers there, whole or not at all, instead of printing them",
)
@reading_options
@described_options(RATING_OPTIONS, group="Ratings of the files")
def run(
    *,
    model: str,
    files: tuple[str, ...],
    threshold: float | None,
    probabilities: bool,
    output: str | None,
    **options: Any,
) -> int:
    if not files:
        require_files_for(options)
    require_s3(model, *files, output)
    loaded = open_model(model)
    if loaded.classes:
        require_no_option_of_two_classes({"threshold": threshold, **options})
    labelled_by = loaded.loss.threshold if threshold is None else threshold
    form = _AnswerForm(loaded.class_names, probabilities=probabilities, keep=options["keep"])
    with _answer_file(output) as out:
        if files:
            _label_files(loaded, files, options, threshold=labelled_by, form=form, out=out)
        else:
            _label_standard_input(loaded, threshold=labelled_by, form=form, out=out)
    return 0


def require_files_for(options: dict[str, Any]) -> None:
    """Raise UsageError for an option of files: standard input is plain text, without ratings and labels."""
    for name, value in options.items():
        if value not in (None, (), False):
            raise UsageError(f"--{name.replace('_', '-')} goes with files")


def require_no_option_of_two_classes(options: dict[str, Any]) -> None:
    """Raise UsageError for an option that has no meaning for classes with names: they have no ratings, and none is the
    positive one."""
    for name in ("threshold", "rating_field", "positive_label", *_RATING_NAMES):
        if options.get(name) not in (None, False):
            raise UsageError(
                f"--{name.replace('_', '-')} goes with a negative and a positive class, and this model has others"
            )


def _label_standard_input(model: "TrainedModel", *, threshold: float, form: "_AnswerForm", out: TextIO) -> None:
    from bootstrap.prediction.answers import AnswerCounts
    from bootstrap.prediction.standard_input import label_lines
    from corpus.reading.tally import Tally

    tally, answers = Tally(), AnswerCounts()
    for texts, predictions in label_lines(model, sys.stdin.buffer, tally, threshold=threshold):
        form.write(out, texts, predictions)
        answers.unknown += sum(each.label is None for each in predictions)
    if tally.counts["malformed"] or answers.unknown:
        report(tally, answers, threshold=threshold)


def _label_files(
    model: "TrainedModel",
    files: Sequence[str],
    options: dict[str, Any],
    *,
    threshold: float,
    form: "_AnswerForm",
    out: TextIO,
) -> None:
    from bootstrap.prediction.answers import AnswerCounts
    from bootstrap.prediction.texts import label_text_files
    from corpus.reading.tally import Tally

    found = find_files(model, files, options)
    total_bytes = found.understanding.plain_bytes
    tally, answers, done = Tally(), AnswerCounts(classes=model.classes), 0
    with Bars() as bars:
        if not out.isatty():  # on a terminal the answers are the progress
            bars.stage("predict", total_bytes)
        for batch, predictions in label_text_files(model, found, tally, answers, threshold=threshold):
            form.write(out, batch.texts, predictions, batch.kept)
            done += batch.raw_bytes
            bars.at(done)
    require_answers(tally, answers, found)
    report(tally, answers, found, threshold=threshold)


def require_answers(tally: "Tally", answers: "AnswerCounts", found: "TextFiles") -> None:
    """Raise DataError where no record can be read, or the model knows none of the labels."""
    if tally.counts["lines"] == tally.counts["malformed"]:
        raise DataError(f"no record of the input can be read: {malformed(tally)}")
    if found.not_compared is None and answers.others and not answers.counts:
        raise DataError(
            f"the model knows none of the labels of the input, such as {list_values(found.understanding.values)}; name "
            "their field by --label-field, take a model of these classes, or leave the labels out of the input"
        )


def find_files(model: "TrainedModel", files: Sequence[str], options: dict[str, Any]) -> "TextFiles":
    """The files, with what their ratings mean; prints what a person should know of them."""
    from bootstrap.prediction.texts import find_text_files
    from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED

    try:
        settings = rating_settings(model, **{name: options[name] for name in _RATING_NAMES})
        reading = replace(
            read_reading_options(options, settings),
            keep=options.get("keep", ()),
            classes=model.classes,
            others=bool(model.classes),
        )
    except DataError as error:
        raise UsageError(str(error)) from error
    found = find_text_files(list(files), reading, settings, exclude=list(options["exclude"]))
    if found.not_compared is None and not model.classes:
        found.understanding.check_values(found.settings, DEFAULT_MAX_MALFORMED)
    for warning in found.understanding.warnings:
        print_warning(warning)
    return found


class _AnswerForm:
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
def _answer_file(output: str | None) -> Iterator[TextIO]:
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
