"""Converts the settings of a dataset to command-line options, of a job and of the launcher, and back.

mrjob's parser and argparse share one list of options, so a job on a cluster reads an option as the user's command does.
"""

import json
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from corpus.reading.storage import readable
from corpus.settings import WORD_RULES, Settings, in_steps
from corpus.text import STOPWORD_LISTS, load_stopwords

_DEFAULT = Settings()
_RAGGED_VOCABULARY = 2_000_000


def add_settings(add_argument: Callable[..., Any]) -> None:
    """Declare the options by `add_argument`: argparse's method, or mrjob's `add_passthru_arg`."""
    add_argument(
        "--rows",
        choices=("fixed", "ragged"),
        help="fixed: cut and padded to --row-length; ragged: whole texts, as fastText learns from (fixed, or ragged "
        "with --classes)",
    )
    add_argument(
        "--row-length", type=int, default=_DEFAULT.row_length, metavar="N", help="words of a row at most (%(default)s)"
    )
    add_argument(
        "--words",
        choices=WORD_RULES,
        default=_DEFAULT.words,
        help="letters: words of a to z; tokens: digits and punctuation, too, as in fastText's example (%(default)s)",
    )
    add_argument(
        "--vocabulary-size",
        type=int,
        metavar="N",
        help=f"words with an id of their own ({_DEFAULT.vocabulary_size}, or {_RAGGED_VOCABULARY} with ragged rows: in "
        "general all words)",
    )
    add_argument(
        "--keep-duplicates",
        action="store_true",
        help="make a row of every text, as published train and test sets have them; otherwise equal texts make one row",
    )
    add_judging(add_argument)
    add_argument(
        "--stopwords",
        metavar="|".join((*STOPWORD_LISTS, "FILE")),
        help="words to leave out. nltk: NLTK's English list, and product, would, get; keep-negations: the same list "
        "without negations such as 'not', so that texts keep them, which makes models better; none: no word, better "
        "still where most texts are shorter than a row; FILE: "
        "those of a file, one a line (nltk, or none with --words tokens)",
    )


def add_judging(add_argument: Callable[..., Any]) -> None:
    """Declare the options for what ratings mean, and for the share of the test; `read_judging` reads them."""
    add_usual_scale(add_argument)
    add_argument(
        "--test-share",
        type=float,
        default=_DEFAULT.test_share,
        metavar="SHARE",
        help="share of the texts kept for the test (%(default)s)",
    )


def add_usual_scale(add_argument: Callable[..., Any]) -> None:
    """Declare the options for what ratings mean, with the defaults of a dataset."""
    low, high = _DEFAULT.rating_range
    add_rating_scale(
        add_argument,
        default_range=[low, high],
        range_text=f"{low} {high}",
        default_positive=_DEFAULT.positive_from,
        positive_text="%(default)s",
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


def read_settings(options: Namespace, classes: tuple[str, ...] = ()) -> Settings:
    """The settings from parsed options, and with the names of more than two classes, which come with the input.

    Raises corpus.errors.DataError for values that contradict each other.
    """
    ragged = bool(classes) if options.rows is None else options.rows == "ragged"
    usual_size = _RAGGED_VOCABULARY if ragged else _DEFAULT.vocabulary_size
    usual_stopwords = "none" if options.words == "tokens" else _DEFAULT.stopwords
    return read_judging(
        options,
        Settings(
            row_length=options.row_length,
            vocabulary_size=usual_size if options.vocabulary_size is None else options.vocabulary_size,
            stopwords=usual_stopwords if options.stopwords is None else options.stopwords,
            ragged=ragged,
            words=options.words,
            duplicates=options.keep_duplicates,
            labelled=bool(classes),
            classes=classes,
        ),
    )


def read_judging(options: Namespace, settings: Settings) -> Settings:
    """`settings` with the values of `add_judging`. Raises DataError as `read_settings` does."""
    steps = 2 if options.half_stars else 1
    return replace(
        settings,
        rating_steps=steps,
        rating_range=(in_steps(options.rating_range[0], steps), in_steps(options.rating_range[1], steps)),
        rating_fraction=options.rating_fraction,
        positive_from=in_steps(options.positive_from, steps),
        test_share=options.test_share,
    )


def read_job_settings(options: Namespace) -> Settings:
    """The settings of a job, with those of `add_input_settings`."""
    return replace(
        read_settings(options, () if options.classes is None else tuple(json.loads(options.classes))),
        labelled=options.labelled,
        positive_label=None if options.positive_label is None else json.loads(options.positive_label),
        test_input=options.test_input,
    )


def settings_arguments(settings: Settings) -> list[str]:
    """The options for a job with these settings, without the stopwords, which may be a file to copy."""
    return [
        f"--rows={'ragged' if settings.ragged else 'fixed'}",
        f"--row-length={settings.row_length}",
        f"--words={settings.words}",
        *(["--keep-duplicates"] if settings.duplicates else []),
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


def read_stopwords(choice: str, words: str) -> frozenset[str]:
    """The words to leave out, also from a file at any address; see `corpus.text.load_stopwords`."""
    if choice in STOPWORD_LISTS:
        return load_stopwords(choice, words)
    with readable(choice) as path:
        return load_stopwords(str(path), words)


def _rating(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a rating such as 4") from None


def _ascii_json(labels: str | Sequence[str]) -> str:
    """A label, or some, as JSON in ASCII without apostrophes, for a quoted argument on a node of any encoding."""
    return json.dumps(labels).replace("'", "\\u0027")
