"""The options by which `shoal plan` looks at a user's reviews, and what it shows of them."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import Callback, described_options, option, typed_options
from bootstrap.cli.figures import size
from bootstrap.cli.input_options import (
    READING,
    READING_NAMES,
    classes_option,
    read_reading_options,
    reading_options,
    require_s3,
    scale_suggested,
)
from bootstrap.cli.output import percent, table
from common.display import plural
from common.errors import DataError, UsageError
from common.options import flag
from corpus.dataset_settings import DEFAULT
from corpus.reading.sources import Inputs
from jobs.choose import LIMITS
from jobs.job_settings import RATING_SCALE, read_judging

if TYPE_CHECKING:
    from bootstrap.preprocessing.extent import Extent
    from experiments.forecast.estimate import Estimate


def like_options(group: str) -> Callable[[Callback], Callback]:
    """Declare --like, in this group of the help, and the options for how its files are read."""

    def decorated(function: Callback) -> Callback:
        described_options((*RATING_SCALE, *LIMITS), group=READING)(function)
        classes_option(function)
        reading_options(function)
        return option(
            "--like",
            group=group,
            several=True,
            type=click.Path(),
            metavar="PATH_OR_S3...",
            help="reviews, in place of --rows and --raw-bytes: a sample of them tells how many and how long they are",
        )(function)

    return decorated


def check_options(ctx: click.Context) -> None:
    """Raise UsageError for options that do not go with --like, or need it."""
    typed = typed_options(ctx)
    if not ctx.params["like"]:
        if needless := [name for name in typed if name in READING_NAMES]:
            raise UsageError(f"{flag(needless[0])} goes with --like, the reviews to look at")
    elif both := [name for name in ("rows", "raw_bytes") if name in typed]:
        raise UsageError(f"--like finds out what {flag(both[0])} says; give one of them")


def read_extent(ctx: click.Context) -> "Extent":
    """What the reviews of --like are. Raises DataError for input that cannot be used, as `shoal preprocess` does."""
    from bootstrap.preprocessing.extent import extent_of
    from bootstrap.preprocessing.preview import check_preview, preview_local

    asked = ctx.params
    try:
        settings = read_judging(Namespace(**asked, test_share=DEFAULT.test_share), DEFAULT)
        options = read_reading_options(
            asked, settings.rating_range, settings.rating_steps, rating_fraction=settings.rating_fraction
        )
    except DataError as error:
        raise UsageError(str(error)) from error
    inputs = Inputs(files=asked["like"], exclude=asked["exclude"], options=options)
    require_s3(*inputs.addresses)
    with scale_suggested(ctx.obj):
        preview = preview_local(inputs, settings, output=None, processes=False)
        check_preview(preview, max_malformed=asked["max_malformed"], allow_damaged=asked["allow_damaged"])
        return extent_of(preview)


def lines(extent: "Extent") -> Iterator[str]:
    """What the reviews are, for a person."""
    values = sum(extent.values.values())
    shares = ", ".join(f"{value}: {percent(number / values)}" for value, number in extent.values.items())
    unpacked = f"; {_range(extent.raw_bytes, size)} unpacked" if extent.raw_bytes.middle != extent.stored_bytes else ""
    yield table(
        [
            ("reviews", f"{plural(extent.files, 'file')}, {size(extent.stored_bytes)}{unpacked}"),
            ("texts", _range(extent.texts, _count)),
            ("rows", _range(extent.rows, _count)),
            ("words a text", f"{extent.words:,.0f}"),
            ("labels" if extent.labelled else "ratings", shares),
        ]
    )
    yield ""
    yield "What this rests on:"
    yield from (f"  {sentence}" for sentence in extent.assumed)


def content(extent: "Extent") -> dict[str, Any]:
    """The same for a program."""
    return {
        "files": extent.files,
        "bytes": extent.stored_bytes,
        "raw_bytes": extent.raw_bytes._asdict(),
        "texts": extent.texts._asdict(),
        "rows": extent.rows._asdict(),
        "words": extent.words,
        "labelled": extent.labelled,
        "values": dict(extent.values),
        "assumed": list(extent.assumed),
    }


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _range(amount: "Estimate", form: Callable[[float], str]) -> str:
    if amount.low == amount.high:
        return form(amount.middle)
    return f"about {form(amount.middle)} ({form(amount.low)} to {form(amount.high)})"
