"""The settings of a dataset as command-line options: of a job, of the launcher, and back again.

One list serves mrjob's option parser and argparse's, so a job on a cluster cannot understand an option
differently from the command that the user typed.
"""

from argparse import Namespace
from collections.abc import Callable
from typing import Any

from corpus.settings import Settings

_DEFAULT = Settings()


def add_settings(add_argument: Callable[..., Any]) -> None:
    """Declare the options by `add_argument`: argparse's method, or mrjob's `add_passthru_arg`."""
    low, high = _DEFAULT.rating_range
    add_argument(
        "--row-length", type=int, default=_DEFAULT.row_length, metavar="N", help="words of a row at most (%(default)s)"
    )
    add_argument(
        "--vocabulary-size",
        type=int,
        default=_DEFAULT.vocabulary_size,
        metavar="N",
        help="words with an id of their own (%(default)s)",
    )
    add_argument(
        "--rating-range",
        type=int,
        nargs=2,
        default=[low, high],
        metavar=("LOW", "HIGH"),
        help=f"smallest and largest rating ({low} {high})",
    )
    add_argument(
        "--positive-from",
        type=int,
        default=_DEFAULT.positive_from,
        metavar="RATING",
        help="the smallest rating that makes a text positive (%(default)s)",
    )
    add_argument(
        "--test-share",
        type=float,
        default=_DEFAULT.test_share,
        metavar="SHARE",
        help="share of the texts kept for the test (%(default)s)",
    )
    add_argument(
        "--stopwords",
        default=_DEFAULT.stopwords,
        metavar="nltk|none|FILE",
        help="words to leave out: NLTK's English ones and three that reviews are full of, none, "
        "or those of a file, one a line (%(default)s)",
    )


def read_settings(options: Namespace) -> Settings:
    """The settings that parsed options say. Raises corpus.errors.DataError for values that make no sense."""
    return Settings(
        row_length=options.row_length,
        vocabulary_size=options.vocabulary_size,
        rating_range=(options.rating_range[0], options.rating_range[1]),
        positive_from=options.positive_from,
        test_share=options.test_share,
        stopwords=options.stopwords,
    )


def settings_arguments(settings: Settings) -> list[str]:
    """The options that say these settings, but for the stopwords, which may be a file that has to travel."""
    return [
        f"--row-length={settings.row_length}",
        f"--vocabulary-size={settings.vocabulary_size}",
        "--rating-range",
        *map(str, settings.rating_range),
        f"--positive-from={settings.positive_from}",
        f"--test-share={settings.test_share}",
    ]
