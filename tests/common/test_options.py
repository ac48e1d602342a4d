"""Option descriptions are converted to argparse options."""

from common.options import Option, argparse_argument

OPTIONS = (
    Option("row_length", "words a row", kind=int, default=100, aliases=("-l",)),
    Option("rating_range", "least and most", kind=int, default=(1, 5), values=2, metavar="LEAST MOST"),
    Option("quiet", "say 100% of nothing", kind=bool),
    Option("input", "files", required=True, several=True),
    Option("words", "the rule", default="letters", choices=("letters", "tokens")),
)


def test_help_shows_existing_defaults() -> None:
    helps = {each.name: each.help for each in OPTIONS}
    assert helps["row_length"] == "words a row (default: 100)"
    assert helps["rating_range"] == "least and most (default: 1 5)"
    assert (helps["quiet"], helps["input"]) == ("say 100% of nothing", "files")
    assert "say 100%% of nothing" in argparse_argument(OPTIONS[2])["help"]
