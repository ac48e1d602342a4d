"""Option descriptions are converted to argparse options."""

from argparse import ArgumentError, ArgumentParser
from typing import Any

import pytest

from common.options import Option, argparse_argument

OPTIONS = (
    Option("row_length", "words a row", kind=int, default=100, aliases=("-l",)),
    Option("rating_range", "least and most", kind=int, default=(1, 5), values=2, metavar="LEAST MOST"),
    Option("quiet", "say 100% of nothing", kind=bool),
    Option("input", "files", required=True, several=True),
    Option("words", "the rule", default="letters", choices=("letters", "tokens")),
)


def parsed(*words: str) -> dict[str, Any]:
    parser = ArgumentParser(exit_on_error=False)
    for each in OPTIONS:
        parser.add_argument(*each.flags, **argparse_argument(each))
    return vars(parser.parse_args(words))


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        *(("", "row_length", 100), ("-l 7", "row_length", 7), ("--rating-range 2 9", "rating_range", [2, 9])),
        *(("", "quiet", False), ("--quiet", "quiet", True), ("--input b c", "input", ["a", "b", "c"])),
        ("--words tokens", "words", "tokens"),
    ],
)
def test_options_are_read(words: str, name: str, value: object) -> None:
    assert parsed("--input", "a", *words.split())[name] == value


@pytest.mark.parametrize("words", ["", "--input", "--input a --words runes", "--input a -l x"])
def test_wrong_options_are_refused(words: str) -> None:
    with pytest.raises((ArgumentError, SystemExit)):
        parsed(*words.split())


def test_help_shows_existing_defaults() -> None:
    helps = {each.name: each.help for each in OPTIONS}
    assert helps["row_length"] == "words a row (default: 100)"
    assert helps["rating_range"] == "least and most (default: 1 5)"
    assert (helps["quiet"], helps["input"]) == ("say 100% of nothing", "files")
    assert "say 100%% of nothing" in argparse_argument(OPTIONS[2])["help"]
