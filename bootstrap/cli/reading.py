"""The options that say which files are preprocessed and how they are read.

The easy mistake is to ask for what the files say themselves: without any of these options but --input, the usual
review files are understood, and what is not gets an error that names the option.
"""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from corpus.errors import DataError
from corpus.reading.sources import KINDS, Inputs, Wanted


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Declare those that say which files."""
    files = parser.add_argument_group(
        "input",
        "files, folders, patterns in quotes ('reviews/*.json.gz') or s3://bucket/prefix; plain, .gz, .bz2, .xz or .zst",
    )
    for name, text in (
        ("input", "reviews, each with its rating or label"),
        ("test-input", "reviews to test with, instead of a share of --input"),
        ("positive-input", "texts of the positive class, as a rule one a line"),
        ("negative-input", "texts of the negative class"),
    ):
        files.add_argument(f"--{name}", nargs="+", action="extend", default=[], metavar="PATH_OR_S3", help=text)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare those that say which of the files are left out, and how the others are read."""
    parser.add_argument(
        "--exclude",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATTERN",
        help="what to leave out of folders and patterns: names ('*.png'), or ends of paths ('old/*.json'), of files or "
        "folders; in quotes",
    )
    reading = parser.add_argument_group(
        "how it is read", "found out from the first lines of each file (`shoal preprocess --dry-run` shows it)"
    )
    reading.add_argument("--format", choices=KINDS, help="what all files are")
    reading.add_argument(
        "--separator",
        metavar="TEXT",
        help="what stands between the columns of a line, such as ';' or '$LABEL$'; with , and ; values may be quoted",
    )
    reading.add_argument(
        "--text-field",
        nargs="+",
        action="extend",
        default=[],
        metavar="FIELD",
        help="field of the text, or several, joined by a space; names or, of columns without names, numbers from 1",
    )
    value = reading.add_mutually_exclusive_group()
    value.add_argument("--rating-field", metavar="FIELD", help="field of the rating")
    value.add_argument("--label-field", metavar="FIELD", help="field of the label, for input that says classes")
    reading.add_argument(
        "--positive-label",
        metavar="LABEL",
        help="the label of the positive class, all others being negative (not needed for 0/1, 1/2, neg/pos, "
        "negative/positive and __label__1/__label__2)",
    )


def read_inputs(
    args: argparse.Namespace, rating_range: tuple[int, int], rating_steps: int = 1, *, rating_fraction: bool = False
) -> Inputs:
    """What was given by them, with what settings say of ratings. Raises DataError for what contradicts itself."""
    return Inputs(
        files=tuple(args.input),
        test=tuple(args.test_input),
        positive=tuple(args.positive_input),
        negative=tuple(args.negative_input),
        exclude=tuple(args.exclude),
        wanted=read_wanted(args, rating_range, rating_steps, rating_fraction=rating_fraction),
    )


def read_wanted(
    args: argparse.Namespace, rating_range: tuple[int, int], rating_steps: int = 1, *, rating_fraction: bool = False
) -> Wanted:
    """How files are to be read, as far as that was said. Raises DataError for what contradicts itself."""
    return Wanted(
        kind=args.format,
        separator="\t" if args.separator == r"\t" else args.separator,
        text=tuple(args.text_field),
        rating=args.rating_field,
        label=args.label_field,
        positive_label=args.positive_label,
        rating_range=rating_range,
        rating_steps=rating_steps,
        rating_fraction=rating_fraction,
    )


def require_s3(*addresses: str | None) -> None:
    """Raise ShoalError where one of these is in an emulator's S3 that is not there."""
    if any(address and address.startswith("s3://") for address in addresses):
        from bootstrap.aws.loopback import require_s3  # which loads AWS's library

        require_s3()


@contextmanager
def whole_command(typed: Sequence[str]) -> Iterator[None]:
    """Where ratings are on another scale, show the whole command that reads them, as `typed` and with more options."""
    from corpus.reading.inputs.scales import ScaleError

    try:
        yield
    except ScaleError as error:
        if not error.options:
            raise
        again = [*(word for word in typed if word != "--dry-run"), *error.options]
        raise DataError(f"{error.sentence}; if that is their scale, type: shoal {shlex.join(again)}") from error
