"""The options of how text is read for vectors of words, which `shoal train` has for models of words."""

from typing import Any

import click

from bootstrap.cli.command import Callback, option
from bootstrap.errors import UsageError
from corpus.errors import DataError
from corpus.stream.settings import TOKENISERS, StreamSettings, absolute
from trainer.options import flag

GROUP = "Text for words"
NOTE = (
    "For models of words (--model skipgram): --input names files, folders, s3://... or tcp://HOST:PORT, of which each "
    "line is a text."
)
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
            help="how a line becomes words: at spaces, and punctuation apart (punctuation); as the Penn Treebank has "
            "them, which takes ten times as long (treebank); at spaces alone (spaces); or runs of letters (letters)",
        ),
        option("--keep-case", group=GROUP, is_flag=True, help="do not make words lower case"),
        option("--lemmatize", group=GROUP, is_flag=True, help="take the base form of each word, such as go for went"),
        option(
            "--follow",
            group=GROUP,
            is_flag=True,
            help="the files or the prefix keep growing: learn from what comes, until --words, --minutes or a stop",
        ),
        option(
            "--readers", group=GROUP, type=int, default=1, metavar="N", help="processes that read the text (default: 1)"
        ),
    )
    for each in reversed(options):
        each(function)
    return function


def stream_settings(options: dict[str, Any]) -> StreamSettings:
    """How the text is read, by `options`. Raises UsageError for values that cannot be."""
    for name in ("test_input", "positive_input", "negative_input", "exclude", "format", "text_field"):
        if options[name]:
            raise UsageError(f"{flag(name)} goes with models that classify texts; a model of words takes --input alone")
    try:
        return StreamSettings(
            sources=tuple(map(absolute, options["input"])),
            readers=options["readers"],
            tokeniser=options["tokeniser"],
            lowercase=not options["keep_case"],
            lemmatize=options["lemmatize"],
            follow=options["follow"],
            max_malformed=options["max_malformed"],
        )
    except DataError as error:
        raise UsageError(str(error)) from error


def refuse_word_options(typed: dict[str, Any], model: str) -> None:
    """Raise UsageError for one of the options that was typed for a model that classifies texts."""
    if needless := [name for name in typed if name in NAMES]:
        raise UsageError(f"{flag(needless[0])} goes with models of words, such as skipgram, and not with {model}")
