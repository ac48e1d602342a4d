"""The options of how `shoal embed` reads text."""

from typing import Any

import click

from bootstrap.cli.command import Callback, option
from common.errors import DataError, UsageError
from common.options import flag
from corpus.stream.stream_settings import TOKENISERS, StreamSettings, absolute

GROUP = "How it is read"
NAMES = ("tokeniser", "keep_case", "lemmatize", "follow", "readers")


def word_options(function: Callback) -> Callback:
    """Declare the options; `stream_settings` reads them."""
    options = (
        option(
            "--tokeniser",
            "--tokenizer",
            group=GROUP,
            type=click.Choice(TOKENISERS),
            default="punctuation",
            advanced=True,
            help="how a line becomes words: at spaces, and punctuation apart (punctuation); as the Penn Treebank has "
            "them, which takes ten times as long (treebank); at spaces alone (spaces); or runs of letters (letters)",
        ),
        option("--keep-case", group=GROUP, is_flag=True, advanced=True, help="do not make words lower case"),
        option(
            "--lemmatize",
            group=GROUP,
            is_flag=True,
            advanced=True,
            help="take the base form of each word, such as go for went",
        ),
        option(
            "--follow",
            group=GROUP,
            is_flag=True,
            help="the files or the prefix keep growing: learn from what comes, until --words, --minutes or a stop",
        ),
        option(
            "--readers",
            group=GROUP,
            type=int,
            metavar="N",
            advanced=True,
            help="processes that read the text (default: 1; on a deployment one on each of its nodes that read)",
        ),
    )
    for each in reversed(options):
        each(function)
    return function


def stream_settings(options: dict[str, Any]) -> StreamSettings:
    """How the text is read, by `options`. Raises UsageError for values that cannot be."""
    try:
        return StreamSettings(
            sources=tuple(map(absolute, options["input"])),
            readers=1 if options["readers"] is None else options["readers"],
            tokeniser=options["tokeniser"],
            lowercase=not options["keep_case"],
            lemmatize=options["lemmatize"],
            follow=options["follow"],
            max_malformed=options["max_malformed"],
        )
    except DataError as error:
        raise UsageError(str(error)) from error


def refuse_reading_options(typed: dict[str, Any]) -> None:
    """Raise UsageError for an option that was typed of how text is read, where it was read before."""
    if needless := [name for name in typed if name in (*NAMES, "max_malformed")]:
        raise UsageError(f"{flag(needless[0])} goes with --input; the folder of --data says how its text is read")
