"""`shoal predict`: texts in, a label and a probability a line out, and scores where files have ratings or labels.

Do not print anything else on standard output, because programs read it: it has one line for each text, in their order.
Scores and warnings go to standard error.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import click

from bootstrap.cli.command import command, described_options, option
from bootstrap.cli.input_options import NOTES, read_reading_options, reading_options, require_s3
from bootstrap.cli.learning.answer_lines import AnswerForm, answer_file
from bootstrap.cli.learning.scores import malformed, report
from bootstrap.cli.output import print_warning
from bootstrap.prediction.model import open_model, rating_settings
from bootstrap.progress import Bars
from common.errors import DataError, UsageError
from corpus.reading.inputs.labels import list_values
from jobs.job_settings import RATING_SCALE

if TYPE_CHECKING:
    from bootstrap.prediction.answers import AnswerCounts
    from bootstrap.prediction.texts import TextFiles
    from corpus.reading.tally import Tally
    from trainer.classification.trained_model import TrainedModel

RATING_OPTIONS = tuple(
    replace(each, default=None, text=f"{each.text} (default: as the model was trained)") if each.default else each
    for each in RATING_SCALE
)
_RATING_NAMES = tuple(each.name for each in RATING_OPTIONS)
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
    form = AnswerForm(loaded.class_names, probabilities=probabilities, keep=options["keep"])
    with answer_file(output) as out:
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


def _label_standard_input(model: "TrainedModel", *, threshold: float, form: AnswerForm, out: TextIO) -> None:
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
    form: AnswerForm,
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
