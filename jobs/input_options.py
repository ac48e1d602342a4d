"""Options that say which files are read, and how. Common review files need only the names of the files.

The commands of `shoal` and the jobs declare the same options from these descriptions.
"""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import Any

from common.options import Option
from corpus.dataset_settings import Settings
from corpus.reading.sources import FORMAT_CHOICES, QUOTING_CHOICES, Inputs, ReadingOptions

_INPUT, _READING = "Input", "Input format"


def _path(text: str) -> str:
    if not text:
        raise ArgumentTypeError("the path is empty; a shell variable in the command may be unset")
    return text


def _files(name: str, text: str, *, advanced: bool) -> Option:
    return Option(
        name, text, kind=_path, group=_INPUT, several=True, default=(), metavar="PATH_OR_S3", advanced=advanced
    )


FILES = _files("input", "reviews with ratings or labels", advanced=False)
TEST_FILES = (
    _files("test_input", "reviews for the test rows (default: a share of --input)", advanced=False),
    _files("positive_input", "files with texts of the positive class, usually one text per line", advanced=True),
    _files("negative_input", "files with texts of the negative class", advanced=True),
)
CLASSES = Option(
    "classes",
    "labels of the classes if there are more than two classes, with or without the prefix __label__; the position of a "
    "label is its class number",
    group=_READING,
    several=True,
    default=(),
    metavar="LABEL",
    advanced=True,
)
READING = (
    Option(
        "exclude",
        "leave out files and folders with a matching name ('*.png') or end of the path ('old/*.json'); write patterns "
        "in quotes",
        group=_INPUT,
        several=True,
        default=(),
        metavar="PATTERN",
        advanced=True,
    ),
    Option("format", "format of all files", group=_READING, choices=FORMAT_CHOICES, advanced=True),
    Option(
        "separator",
        "separator between the columns of a line, such as ';' or '$LABEL$'",
        group=_READING,
        metavar="TEXT",
        advanced=True,
    ),
    Option(
        "quoting",
        "doubled: values may be quoted, and quotes inside are doubled (CSV); none: quotes are ordinary characters "
        "(TSV)",
        group=_READING,
        choices=QUOTING_CHOICES,
        advanced=True,
    ),
    Option(
        "text_field",
        "name of the text field or, without a header, the number of the column, from 1; several fields are joined by a "
        "space",
        group=_READING,
        several=True,
        default=(),
        metavar="FIELD",
    ),
    Option("rating_field", "name of the rating field", group=_READING, metavar="FIELD"),
    Option(
        "label_field",
        "name of the label field, for input with labels instead of ratings",
        group=_READING,
        metavar="FIELD",
    ),
    Option(
        "positive_label",
        "label of the positive class; all other labels are negative (detected for 0/1, 1/2, neg/pos, "
        "negative/positive, __label__0/__label__1 and __label__1/__label__2)",
        group=_READING,
        metavar="LABEL",
        advanced=True,
    ),
)


def read_inputs(options: Mapping[str, Any], scale: Settings) -> Inputs:
    """Return the input files and reading options that `options` select; `scale` contains the rating scale.

    Raises DataError for contradictory options.
    """
    return Inputs(
        files=tuple(options["input"]),
        test=tuple(options["test_input"]),
        positive=tuple(options["positive_input"]),
        negative=tuple(options["negative_input"]),
        exclude=tuple(options["exclude"]),
        options=read_reading_options(options, scale),
    )


def read_reading_options(options: Mapping[str, Any], scale: Settings) -> ReadingOptions:
    """Return the reading options that `options` select; `scale` contains the rating scale.

    Raises DataError for contradictory options.
    """
    return ReadingOptions(
        kind=options["format"],
        separator="\t" if options["separator"] == r"\t" else options["separator"],
        quoting=options["quoting"],
        text=tuple(options["text_field"]),
        rating=options["rating_field"],
        label=options["label_field"],
        positive_label=options["positive_label"],
        classes=tuple(options.get("classes", ())),  # commands with --model have no --classes: the model defines them
        rating_range=scale.rating_range,
        rating_steps=scale.rating_steps,
        rating_fraction=scale.rating_fraction,
    )
