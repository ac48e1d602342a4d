"""`shoal predict`: prints a label and a probability for each text.

Programs read standard output: print one line for each text, in order, and nothing else. Counts and warnings go to
standard error.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from common.display import join_lines, plural, printable
from common.errors import DataError, ShoalError, UsageError
from common.progress import reporter
from corpus.dataset_settings import Settings
from corpus.reading.s3 import is_s3
from corpus.reading.sources import ReadingOptions
from corpus.reading.storage import check_writable, writable
from jobs.input_options import read_reading_options
from shoal.cli.command import command, option
from shoal.cli.input_options import FORMAT, NOTES, reading_options, require_s3
from shoal.cli.output import Part, Result, print_result, print_warning, wants_json
from shoal.prediction.model import open_model, rating_settings
from shoal.progress import Bars

if TYPE_CHECKING:
    from corpus.reading.tally import Tally
    from shoal.prediction.texts import TextFiles
    from trainer.classification.labelling import Prediction
    from trainer.classification.trained_model import TrainedModel

_EXAMPLES = """\
\b
Examples:
  echo 'broke after a week' | shoal predict --model results/model
      from standard input, one text per line
  shoal predict --model results/model reviews/*.json.gz >labels.tsv
      from files, as for `shoal preprocess`
  shoal predict --model results/model new.csv --text-field comment --json
      with a text field of a different name
  shoal predict --model s3://bucket/model new.csv --keep id --output new.tsv
      with a model on S3; keep a field of the input, and write to a file
"""


@command(
    help="""\
Print one line per text: its label, the probability that it is positive, and
the text itself. For a model with other classes, the probability is that of the
printed label. If the model knows no word of a text, the label is 'unknown'.
The number of unknown texts is printed at the end.

Files can have any format that `shoal preprocess` reads, compressed or not:
JSON lines, JSON arrays, CSV, TSV, Parquet, fastText. In other files, each line
is a text. Standard input is read like a file, but must not be compressed or
Parquet.
Malformed records are skipped, and counted on standard error. To compare
predictions with ratings or labels, use `shoal evaluate`.
""",
    epilog=_EXAMPLES,
    notes={FORMAT: NOTES[FORMAT]},
    json="print one JSON object per line, and the counts as JSON on standard error",
)
@option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="DIR_OR_S3",
    help="output of `shoal train` or `shoal export`; a path or s3://...",
)
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(),
    metavar="[FILE]...",
    help="files, folders, patterns in quotes or s3://... (default: standard input)",
)
@option(
    "--threshold",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="for two classes: label a text positive above this probability (default: the model's threshold, which "
    "is 0.5 unless --metric set it in training)",
)
@option("--probabilities", is_flag=True, help="print the probabilities of all classes, in the order of the labels")
@option("--header", is_flag=True, help="print the names of the columns first")
@option(
    "--keep",
    multiple=True,
    metavar="FIELD...",
    help="names of input fields to print with each answer or, without a header, numbers of columns, from 1",
)
@option(
    "--output",
    type=click.Path(),
    metavar="FILE_OR_S3",
    help="write the answers to this file instead of standard output; the file appears only when it is complete",
)
@reading_options
def run(
    *,
    model: str,
    files: tuple[str, ...],
    threshold: float | None,
    probabilities: bool,
    header: bool,
    output: str | None,
    **options: Any,
) -> int:
    if header and wants_json():
        raise UsageError("--header names the columns of a table; leave it out, because --json names each value")
    if not files:
        require_files_for({"exclude": options["exclude"], **_options_with_files(options)})
    require_s3(model, *files, output)
    loaded = open_model(model)
    if loaded.classes:
        require_no_option_of_two_classes({"threshold": threshold, **options})
    labelled_by = loaded.loss.threshold if threshold is None else threshold
    form = _AnswerForm(loaded.class_names, probabilities=probabilities, keep=options["keep"])
    with _answer_file(output) as out:
        if header:
            out.write(form.header())
        _label(loaded, files, options, threshold=labelled_by, form=form, out=out)
    return 0


def require_files_for(options: dict[str, Any]) -> None:
    """Raise UsageError if options about files are given, but no files."""
    for name, value in options.items():
        if value not in (None, (), False):
            raise UsageError(f"--{name.replace('_', '-')} requires input files; give the files before this option")


def _options_with_files(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with names of fields that contain a file, because `--keep FIELD FILE` takes both words."""
    fields = {name: options[name] or () for name in ("keep", "text_field")}
    return {name: each for name, each in fields.items() if any(is_s3(word) or Path(word).exists() for word in each)}


def require_no_option_of_two_classes(options: dict[str, Any], *names: str) -> None:
    """Raise UsageError for options about ratings or the positive class, which a model with named classes lacks."""
    for name in ("threshold", "rating_field", "positive_label", *names):
        if options.get(name) not in (None, False):
            raise UsageError(
                f"--{name.replace('_', '-')} requires a model with a negative and a positive class, but this model has "
                "other classes"
            )


def _label(
    model: "TrainedModel",
    files: Sequence[str],
    options: dict[str, Any],
    *,
    threshold: float,
    form: "_AnswerForm",
    out: TextIO,
) -> None:
    """Label the files or, without files, standard input."""
    from corpus.reading.tally import Tally
    from shoal.prediction.texts import label_texts, read_standard_input, read_text_files

    tally, unknown, done, expected = Tally(), 0, 0, 0
    if files:
        found = find_files(model, files, options, unlabelled=True)
        batches, expected = read_text_files(found, tally), found.inspection.plain_bytes
    else:
        reading, _ = _reading_options(model, options)
        batches = read_standard_input(sys.stdin.buffer, reading, tally)
    with Bars():
        if files and not out.isatty():  # on a terminal the answers are the progress
            reporter().stage("predict", expected)
        for batch, predictions in label_texts(model, batches, tally, threshold=threshold, expected=expected):
            form.write(out, batch.texts, predictions, batch.kept)
            unknown += sum(each.label is None for each in predictions)
            done += batch.raw_bytes
            reporter().at(done)
    if files or tally.counts["malformed"] or unknown:
        _print_counts(tally, unknown, threshold=threshold)


def _print_counts(tally: "Tally", unknown: int, *, threshold: float) -> None:
    """Print on standard error how many texts got no answer. Without --json, a count of 0 is not printed."""
    from shoal.prediction.texts import malformed_records

    malformed = tally.counts["malformed"]
    content = {
        "threshold": threshold,
        "records": tally.counts["lines"],
        "malformed": malformed,
        "malformed_lines": [vars(place) for place in tally.malformed_lines()],
        "unknown": unknown,
    }
    parts: list[Part] = [f"unknown: {plural(unknown, 'text')} without a word that the model knows"] if unknown else []
    if malformed:
        count, *places = malformed_records(tally)
        parts.append(join_lines([f"malformed (skipped): {count}", *places]))
    if parts or wants_json():
        print_result(Result(content, parts), sys.stderr)


def find_files(
    model: "TrainedModel", files: Sequence[str], options: dict[str, Any], *, unlabelled: bool = False
) -> "TextFiles":
    """Find the files, detect how to read them, and print warnings about them. See `find_text_files`."""
    from shoal.prediction.texts import find_text_files

    reading, settings = _reading_options(model, options)
    found = find_text_files(files, reading, settings, exclude=options["exclude"], unlabelled=unlabelled)
    for warning in found.inspection.warnings:
        print_warning(warning)
    return found


def _reading_options(model: "TrainedModel", options: dict[str, Any]) -> tuple[ReadingOptions, Settings]:
    try:
        settings = rating_settings(model, options)
        reading = read_reading_options(options, settings)
        return replace(
            reading, keep=options.get("keep", ()), classes=model.classes, others=bool(model.classes)
        ), settings
    except DataError as error:
        raise UsageError(str(error)) from error


class _AnswerForm:
    """Writer of answers as tab-separated columns or JSON objects."""

    def __init__(self, classes: Sequence[str], *, probabilities: bool, keep: Sequence[str]) -> None:
        """`classes`: the model's class names, by label. `keep`: the input fields that are repeated in each answer.

        `probabilities`: whether to write the probability of every class.
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
        """Write one line per text. `kept`: for each text, the values of the fields in `keep`."""
        out.write("".join(map(self._line, texts, predictions, kept or repeat(()))))
        out.flush()

    def header(self) -> str:
        """Return a line with the names of the columns."""
        numbers = self._names if self._probabilities else ("probability",)
        return _line_of(["label", *numbers, *self._keep, "text"])

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
        return _line_of(cells)

    def _name(self, prediction: "Prediction") -> str:
        label = prediction.label
        return "unknown" if label is None else self._names[label] if isinstance(label, int) else label


def _line_of(cells: Sequence[str]) -> str:
    return "\t".join(map(printable, cells)) + "\n"


@contextmanager
def _answer_file(output: str | None) -> Iterator[TextIO]:
    """Yield the output stream: standard output, or a file that replaces `output` after the block.

    Raises ShoalError or DataError if writing fails.
    """
    if output is None:
        yield sys.stdout
        return
    if output.endswith("/") or Path(output).is_dir():
        raise ShoalError(f"{output} is a folder; give a file as --output")
    check_writable(output)
    try:
        with writable(output) as path, path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise ShoalError(f"cannot write {output}: {error.strerror or error}; choose another --output") from error


def _cell(value: object) -> str:
    """Return a field's value as text: a string unchanged, "" for None, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=_as_text)


def _as_text(value: object) -> str:
    """Return a value for which JSON has no type, such as a Parquet date, as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
