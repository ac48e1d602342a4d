"""Converts the settings of a dataset to command-line options, of a job and of the launcher, and back.

mrjob's parser and argparse share one list of options, so a job on a cluster reads an option as the user's command does.
"""

import json
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from corpus.reading.storage import readable
from corpus.settings import Settings, in_steps
from corpus.text import STOPWORD_LISTS, load_stopwords

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
    add_rating_scale(
        add_argument,
        default_range=[low, high],
        range_text=f"{low} {high}",
        default_positive=_DEFAULT.positive_from,
        positive_text="%(default)s",
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
        metavar="|".join((*STOPWORD_LISTS, "FILE")),
        help="words to leave out. nltk: NLTK's English list, and product, would, get; keep-negations: the same list "
        "without negations such as 'not', so that texts keep them, which makes models better; none: no word, better "
        "still where most texts are shorter than a row; FILE: "
        "those of a file, one a line (%(default)s)",
    )


def add_rating_scale(
    add_argument: Callable[..., Any], *, default_range: Any, range_text: str, default_positive: Any, positive_text: str
) -> None:
    """Declare the options for the scale of ratings, and which of them are positive."""
    add_argument(
        "--rating-range",
        type=_rating,
        nargs=2,
        default=default_range,
        metavar=("LOW", "HIGH"),
        help=f"smallest and largest rating ({range_text})",
    )
    add_argument(
        "--half-stars",
        action="store_true",
        help="there are ratings between, such as 3.5; a dataset holds the number of halves",
    )
    add_argument(
        "--rating-fraction",
        action="store_true",
        help="ratings may be written as fractions of the largest, such as 4/5",
    )
    add_argument(
        "--positive-from",
        type=_rating,
        default=default_positive,
        metavar="RATING",
        help=f"the smallest rating that makes a text positive ({positive_text})",
    )


def add_input_settings(add_argument: Callable[..., Any]) -> None:
    """Declare the settings that the launcher finds in the input and passes to a job."""
    add_argument("--labelled", action="store_true", help="the input has classes instead of ratings")
    add_argument("--positive-label", metavar="JSON", help="the label of the positive class, all others being negative")
    add_argument("--classes", metavar="JSON", help="the names of more than two classes, in the order of their numbers")
    add_argument("--test-input", action="store_true", help="the tasks' ranges mark the test set")


def read_settings(options: Namespace) -> Settings:
    """The settings from parsed options. Raises corpus.errors.DataError for values that contradict each other."""
    steps = 2 if options.half_stars else 1
    return Settings(
        row_length=options.row_length,
        vocabulary_size=options.vocabulary_size,
        rating_steps=steps,
        rating_range=(in_steps(options.rating_range[0], steps), in_steps(options.rating_range[1], steps)),
        rating_fraction=options.rating_fraction,
        positive_from=in_steps(options.positive_from, steps),
        test_share=options.test_share,
        stopwords=options.stopwords,
    )


def read_job_settings(options: Namespace) -> Settings:
    """The settings of a job, with those of `add_input_settings`."""
    return replace(
        read_settings(options),
        labelled=options.labelled,
        positive_label=None if options.positive_label is None else json.loads(options.positive_label),
        classes=() if options.classes is None else tuple(json.loads(options.classes)),
        test_input=options.test_input,
    )


def settings_arguments(settings: Settings) -> list[str]:
    """The options for a job with these settings, without the stopwords, which may be a file to copy."""
    return [
        f"--row-length={settings.row_length}",
        f"--vocabulary-size={settings.vocabulary_size}",
        "--rating-range",
        *map(settings.in_units, settings.rating_range),
        *(["--half-stars"] if settings.rating_steps > 1 else []),
        *(["--rating-fraction"] if settings.rating_fraction else []),
        f"--positive-from={settings.in_units(settings.positive_from)}",
        f"--test-share={settings.test_share}",
        *(["--labelled"] if settings.labelled else []),
        *([f"--positive-label={_ascii_json(settings.positive_label)}"] if settings.positive_label is not None else []),
        *([f"--classes={_ascii_json(settings.classes)}"] if settings.classes else []),
        *(["--test-input"] if settings.test_input else []),
    ]


def read_stopwords(choice: str) -> frozenset[str]:
    """The words to leave out, also from a file at any address; see `corpus.text.load_stopwords`."""
    if choice in STOPWORD_LISTS:
        return load_stopwords(choice)
    with readable(choice) as path:
        return load_stopwords(str(path))


def _rating(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a rating such as 4") from None


def _ascii_json(labels: str | Sequence[str]) -> str:
    """A label, or some, as JSON in ASCII without apostrophes, for a quoted argument on a node of any encoding."""
    return json.dumps(labels).replace("'", "\\u0027")
