"""`shoal predict`: texts in, a label and a probability a line out, and scores where it is known what is right.

The easy mistake is to print anything else among the answers: there is a line for each text, in their order, and all
that is said of them together goes to standard error.
"""

import fcntl
import gc
import json
import os
import re
import stat
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from bootstrap.cli.command import Converted, command, declared, option
from bootstrap.cli.output import print_warning
from bootstrap.cli.reading import NOTES, read_wanted, reading_options, require_s3, whole_command
from bootstrap.cli.scores import malformed, report
from bootstrap.errors import ShoalError, UsageError
from bootstrap.progress import Bars
from corpus.errors import DataError
from corpus.settings import in_steps
from jobs.settings import add_rating_scale

if TYPE_CHECKING:
    from corpus.reading.sources import ReadingOptions
    from corpus.settings import Settings
    from trainer.classification.labelling import Prediction
    from trainer.classification.model_file import Model

_AT_ONCE = 1 << 20
_LABELS = {0: "negative", 1: "positive", None: "unknown"}
# What would end the line of an answer, divide it, or be a command to the terminal.
_NO_LETTER = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_EXAMPLES = """\
\b
Examples:
  echo 'broke after a week' | shoal predict --model results/model
      a text a line, from standard input
  shoal predict --model results/model reviews/*.json.gz >labels.tsv
      files as `shoal preprocess` reads them; scores where they say ratings or
      labels
  shoal predict --model results/model new.csv --text-field comment --json
      fields of other names
"""


def _probability(text: str) -> float:
    try:
        probability = float(text)
    except ValueError:
        probability = -1.0
    if not 0 <= probability <= 1:
        raise ArgumentTypeError(f"{text} is no probability from 0 to 1, such as 0.5")
    return probability


_AS_TRAINED = "default: as the model was trained"


@command(
    short_help="label texts with a trained model",
    help="""\
Read texts, and print for each its label, the probability that it is positive,
and the text, in a line. A text that keeps no word (it has none, or only
stopwords) is 'unknown'.

Files may be all that `shoal preprocess` reads, packed or not: JSON lines, CSV,
TSV, Parquet, fastText; of what is none of these each line is a text. Where they
hold ratings or labels, the answers are compared with them: accuracy, F1 and
confusion matrix, on standard error. Malformed records get no line; they are
counted there.
""",
    epilog=_EXAMPLES,
    notes={"How it is read": NOTES["How it is read"]},
)
@option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="DIR_OR_S3",
    help="the output of `shoal train`: its folder, or s3://...",
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
    type=Converted(_probability),
    default=0.5,
    metavar="P",
    help="call a text positive above this probability (default: 0.5)",
)
@reading_options
@declared(
    lambda parser: add_rating_scale(
        parser.add_argument_group("Ratings of the files").add_argument,
        default_range=None,
        range_text=_AS_TRAINED,
        default_positive=None,
        positive_text=_AS_TRAINED,
    )
)
@option(
    "--json",
    "as_json",
    is_flag=True,
    help="print a JSON object a line; the last one on standard error has the scores",
)
@click.pass_obj
def run(
    typed: list[str], /, *, model: str, files: tuple[str, ...], threshold: float, as_json: bool, **given: Any
) -> int:
    """Do it."""
    if not files:
        _check_plain(given)
    require_s3(model, *files)
    with _no_garbage():
        loaded = _load(model)
    if files:
        with whole_command(typed):
            _files(loaded, files, given, threshold=threshold, as_json=as_json)
    else:
        _standard_input(loaded, threshold=threshold, as_json=as_json)
    return 0


def _check_plain(given: dict[str, Any]) -> None:
    """Standard input is plain text, and nothing tells what is right."""
    for name, value in given.items():
        if value not in (None, (), False):
            raise UsageError(f"--{name.replace('_', '-')} goes with files; of standard input each line is a text")


def _standard_input(model: "Model", *, threshold: float, as_json: bool) -> None:
    """Answer each text before the next one is given."""
    from bootstrap.prediction.answers import Answers
    from corpus.reading.tally import Tally
    from corpus.reading.texts import plain_texts
    from trainer.classification.labelling import Labeller
    from trainer.computing.threads import cores

    given = sys.stdin.buffer
    tally, label = Tally(), Labeller(model, threshold, expected=_bytes_to_come(given), threads=cores())
    for texts, _, _ in plain_texts(_as_they_come(given), "standard input", tally):
        _print(texts, label(texts), as_json=as_json)
    if tally.counts["malformed"]:
        report(tally, Answers(), threshold=threshold, as_json=as_json)


def _bytes_to_come(file: BinaryIO) -> int:
    """From a file; 0 from a pipe or a terminal, of which nobody knows."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _as_they_come(file: BinaryIO) -> Iterator[bytes]:
    """What is there, up to a megabyte: the line that somebody typed, or all that a program wrote meanwhile."""
    with suppress(OSError):  # of what is no pipe
        fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _AT_ONCE)  # else a program waits after 64 KiB
    while block := file.read1(_AT_ONCE):  # type: ignore[attr-defined]
        yield block


def _files(model: "Model", files: Sequence[str], reading: dict[str, Any], *, threshold: float, as_json: bool) -> None:
    from bootstrap.prediction.answers import Answers
    from bootstrap.prediction.texts import find_text_files, read_text_files
    from corpus.reading.tally import Tally
    from corpus.reading.texts import join_batches
    from jobs.choose import DEFAULT_MAX_MALFORMED
    from trainer.classification.labelling import Labeller
    from trainer.computing.threads import cores

    settings, wanted = _how(reading, model)
    given = find_text_files(list(files), wanted, settings, exclude=list(reading["exclude"]))
    if given.not_compared is None:
        given.understanding.check_ratings(given.settings, DEFAULT_MAX_MALFORMED)
    for warning in given.understanding.warnings:
        print_warning(warning)
    tally, answers = Tally(), Answers()
    label = Labeller(model, threshold, expected=given.understanding.plain_bytes, threads=cores())
    with Bars() as bars:
        if not sys.stdout.isatty():  # else the answers are the progress
            bars.stage("predict", given.understanding.plain_bytes)
        done = 0
        for texts, codes, size in join_batches(read_text_files(given, tally)):
            said = label(texts)
            _print(texts, said, as_json=as_json)
            answers.add(codes, said)
            done += size
            bars.at(done)
    if tally.counts["lines"] == tally.counts["malformed"]:
        raise DataError(f"no record of the input can be read: {malformed(tally)}")
    report(tally, answers, given, threshold=threshold, as_json=as_json)


def _how(reading: dict[str, Any], model: "Model") -> tuple["Settings", "ReadingOptions"]:
    """What ratings mean, as far as that was not said as it was in training; and how files are to be read.

    The scale of a model is in steps of its own: halves, where it learnt half stars. A model that does not say its
    steps has a scale in those that are asked for.
    """
    from corpus.settings import Settings
    from trainer.classification.losses import Scale

    scale, asked = model.loss.scale, 2 if reading["half_stars"] else 1
    learnt = model.about.get("rating_steps", asked)
    if (scale.low, scale.high) == (0, 1):  # what a model of labels has
        usual = Settings()
        scale, learnt = Scale(*usual.rating_range, usual.positive_from), usual.rating_steps
    steps = max(asked, learnt)
    low, high, positive_from = (value * steps // learnt for value in (scale.low, scale.high, scale.positive_from))
    fraction = reading["rating_fraction"] or model.about.get("rating_fraction", False)
    try:
        if reading["rating_range"] is not None:
            low, high = (in_steps(rating, steps) for rating in reading["rating_range"])
        if reading["positive_from"] is not None:
            positive_from = in_steps(reading["positive_from"], steps)
        settings = Settings(
            rating_steps=steps,
            rating_range=(low, high),
            rating_fraction=fraction,
            positive_from=positive_from,
        )
        return settings, read_wanted(reading, (low, high), steps, rating_fraction=fraction)
    except DataError as error:
        raise UsageError(str(error)) from error


@contextmanager
def _no_garbage() -> Iterator[None]:
    """What is made here stays: Python looks for no garbage among it, neither meanwhile nor later.

    Torch alone is hundreds of thousands of objects; to look through them again and again took a fifth of the start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _load(address: str) -> "Model":
    from trainer.classification.model_file import load_model
    from trainer.output.files import MODEL

    if not address.startswith("s3://"):
        return load_model(address)
    import boto3

    from bootstrap.aws import objects

    place = objects.parse(address if address.endswith(MODEL) else f"{address.rstrip('/')}/{MODEL}")
    with TemporaryDirectory(prefix="shoal-model-") as folder:
        if not objects.exists(s3 := boto3.client("s3"), place):
            raise ShoalError(f"there is no model at {place}; check the address")
        objects.save(s3, place, Path(folder) / MODEL)
        return load_model(folder)


def _print(texts: Sequence[str], said: "Sequence[Prediction]", *, as_json: bool) -> None:
    line = _json_line if as_json else _line
    sys.stdout.write("".join(map(line, texts, said)))
    sys.stdout.flush()


def _json_line(text: str, said: "Prediction") -> str:
    told = {"label": _LABELS[said.label], "probability": round(said.probability, 4), "text": text}
    return f"{json.dumps(told)}\n"


def _line(text: str, said: "Prediction") -> str:
    return f"{_LABELS[said.label]}\t{said.probability:.4f}\t{_NO_LETTER.sub(' ', text)}\n"
