"""The options of how text is read for word embeddings, which `shoal train` has for models of words."""

from typing import Any

import click

from bootstrap.cli.command import Callback, option
from bootstrap.cli.input_options import READING_NAMES
from bootstrap.errors import UsageError
from corpus.errors import DataError
from corpus.stream.settings import TOKENISERS, StreamSettings, absolute
from trainer.options.section import flag

GROUP = "Text for words"
NOTE = (
    "For models of words (--model skipgram, char-lstm): --input names files, folders, s3://... or tcp://HOST:PORT, of "
    "which each line is a text; with --deployment s3://... within the topology's inputs."
)
NAMES = ("tokeniser", "keep_case", "lemmatize", "follow", "readers")
_OF_READING = "max_malformed"
_OF_CLASSIFIERS = (
    *("test_input", "positive_input", "negative_input", "rates"),
    *(name for name in READING_NAMES if name != _OF_READING),
)


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
            "--readers",
            group=GROUP,
            type=int,
            metavar="N",
            help="processes that read the text (default: 1; on a deployment one on each of its nodes that read)",
        ),
    )
    for each in reversed(options):
        each(function)
    return function


def stream_settings(options: dict[str, Any], *, readers: int) -> StreamSettings:
    """How the text is read, by `options`, with so many `readers` by default. Raises UsageError for values that cannot
    be."""
    try:
        return StreamSettings(
            sources=tuple(map(absolute, options["input"])),
            readers=readers if options["readers"] is None else options["readers"],
            tokeniser=options["tokeniser"],
            lowercase=not options["keep_case"],
            lemmatize=options["lemmatize"],
            follow=options["follow"],
            max_malformed=options["max_malformed"],
        )
    except DataError as error:
        raise UsageError(str(error)) from error


def refuse_text_options(typed: dict[str, Any], *, has_stream: bool) -> None:
    """Raise UsageError for an option that was typed and that a model of words has no use for; `has_stream`: its text
    is a folder in which readers have left words."""
    if needless := [name for name in typed if name in _OF_CLASSIFIERS]:
        raise UsageError(
            f"{flag(needless[0])} goes with models that classify texts; a model of words takes --input alone"
        )
    if has_stream and (needless := [name for name in typed if name in (*NAMES, _OF_READING)]):
        raise UsageError(f"{flag(needless[0])} goes with --input; the folder of --data says how its text is read")


def refuse_word_options(typed: dict[str, Any], model: str) -> None:
    """Raise UsageError for one of the options that was typed for a model that classifies texts."""
    if needless := [name for name in typed if name in NAMES]:
        raise UsageError(f"{flag(needless[0])} goes with models of words, such as skipgram, and not with {model}")
