"""Options of all commands that read texts: which files to read, and how.

Common review files need only --input. For other files an error names the missing option.
"""

from collections.abc import Callable
from typing import Any

import click

from bootstrap.cli.command import Callback, option
from corpus.dataset_settings import Settings
from corpus.reading.sources import FORMAT_CHOICES, QUOTING_CHOICES, Inputs, ReadingOptions

INPUT, READING = "Input", "Input format"
NOTES = {
    INPUT: "Files, folders, patterns in quotes ('reviews/*.json.gz') or s3://bucket/prefix. Files can be "
    "compressed as .gz, .bz2, .xz or .zst.",
    READING: "Shoal detects these settings from the first lines of each file; `shoal preprocess --local "
    "--dry-run` shows the detected settings.",
}
"""Help text below the heading of each group of options."""
READING_NAMES = (
    *("exclude", "format", "separator", "quoting"),
    *("text_field", "rating_field", "label_field", "positive_label", "classes"),
    *(
        "rating_range",
        "rating_step",
        "rating_fraction",
        "positive_from",
        "test_share",
        "max_malformed",
    ),
)
"""Names of the options that say how texts are read."""


classes_option = option(
    "--classes",
    group=READING,
    several=True,
    metavar="LABEL...",
    advanced=True,
    help="labels of the classes if there are more than two classes, with or without the prefix __label__; the "
    "position of a label is its class number",
)
"""Decorator that declares --classes."""


def input_options(function: Callback) -> Callback:
    """Decorator that declares the options that `read_inputs` uses: input files and their classes."""
    classes_option(function)
    for name, advanced, text in (
        ("negative-input", True, "files with texts of the negative class"),
        ("positive-input", True, "files with texts of the positive class, usually one text per line"),
        ("test-input", False, "reviews for the test rows (default: a share of --input)"),
        ("input", False, "reviews with ratings or labels"),
    ):
        how = {"group": INPUT, "several": True, "type": click.Path(), "metavar": "PATH_OR_S3...", "advanced": advanced}
        option(f"--{name}", help=text, **how)(function)
    return function


def reading_options(function: Callback) -> Callback:
    """Decorator that declares the options that `read_reading_options` uses: how to read files."""
    options: tuple[Callable[[Callback], Callback], ...] = (
        option(
            "--exclude",
            group=INPUT,
            several=True,
            metavar="PATTERN...",
            advanced=True,
            help="leave out files and folders with a matching name ('*.png') or end of the path ('old/*.json'); "
            "write patterns in quotes",
        ),
        option("--format", group=READING, type=click.Choice(FORMAT_CHOICES), advanced=True, help="format of all files"),
        option(
            "--separator",
            group=READING,
            metavar="TEXT",
            advanced=True,
            help="separator between the columns of a line, such as ';' or '$LABEL$'",
        ),
        option(
            "--quoting",
            group=READING,
            type=click.Choice(QUOTING_CHOICES),
            advanced=True,
            help="doubled: values may be quoted, and quotes inside are doubled (CSV); none: quotes are ordinary "
            "characters (TSV)",
        ),
        option(
            "--text-field",
            group=READING,
            several=True,
            metavar="FIELD...",
            help="name of the text field or, without a header, the number of the column, from 1; several fields "
            "are joined by a space",
        ),
        option("--rating-field", group=READING, metavar="FIELD", help="name of the rating field"),
        option(
            "--label-field",
            group=READING,
            metavar="FIELD",
            help="name of the label field, for input with labels instead of ratings",
        ),
        option(
            "--positive-label",
            group=READING,
            metavar="LABEL",
            advanced=True,
            help="label of the positive class; all other labels are negative (detected for 0/1, 1/2, neg/pos, "
            "negative/positive, __label__0/__label__1 and __label__1/__label__2)",
        ),
    )
    for each in reversed(options):
        each(function)
    return function


def read_inputs(options: dict[str, Any], scale: Settings) -> Inputs:
    """Return the input files and reading options that `options` select; `scale` contains the rating scale.

    Raises DataError for contradictory options.
    """
    return Inputs(
        files=options["input"],
        test=options["test_input"],
        positive=options["positive_input"],
        negative=options["negative_input"],
        exclude=options["exclude"],
        options=read_reading_options(options, scale),
    )


def read_reading_options(options: dict[str, Any], scale: Settings) -> ReadingOptions:
    """Return the reading options that `options` select; `scale` contains the rating scale.

    Raises DataError for contradictory options.
    """
    return ReadingOptions(
        kind=options["format"],
        separator="\t" if options["separator"] == r"\t" else options["separator"],
        quoting=options["quoting"],
        text=options["text_field"],
        rating=options["rating_field"],
        label=options["label_field"],
        positive_label=options["positive_label"],
        classes=options.get("classes", ()),  # commands with --model have no --classes: the model defines them
        rating_range=scale.rating_range,
        rating_steps=scale.rating_steps,
        rating_fraction=scale.rating_fraction,
    )


def require_s3(*addresses: str | None) -> None:
    """Raise ShoalError if an address is on S3 and the configured emulator is not running."""
    if any(address and address.startswith("s3://") for address in addresses):
        from bootstrap.aws.loopback import require_s3  # this import loads boto3

        require_s3()
