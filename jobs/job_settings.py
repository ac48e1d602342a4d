"""Options for the settings of a dataset, for the user's command and for the jobs."""

from argparse import ArgumentTypeError, Namespace
from dataclasses import replace

from common.options import Option
from corpus.dataset_settings import DEFAULT, FIXED, RATING_STEPS, REFERENCE, WORD_RULES, Settings, in_steps
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.storage import readable
from corpus.text import STOPWORD_LISTS, load_stopwords


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ArgumentTypeError(f"{text} is not a share from 0 to 1, such as 0.05")
    return share


LIMITS = (
    Option(
        "max_malformed",
        "maximum share of malformed lines",
        kind=_share,
        default=DEFAULT_MAX_MALFORMED,
        metavar="SHARE",
        advanced=True,
    ),
)
"""Options that limit how much bad input is accepted."""


def _rating(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a rating such as 4") from None


RATING_SCALE = (
    Option(
        "rating_range",
        "smallest and largest rating",
        kind=_rating,
        values=2,
        default=DEFAULT.rating_range,
        metavar="LOW HIGH",
        advanced=True,
    ),
    Option(
        "rating_step",
        "step of the rating scale: 1, 0.5 for half stars, or 0.1",
        kind=float,
        choices=tuple(1 / steps for steps in RATING_STEPS),
        default=1.0,
        advanced=True,
    ),
    Option(
        "rating_fraction",
        "accept ratings with their maximum, such as 4/5 or 4 out of 5 stars",
        kind=bool,
        advanced=True,
    ),
    Option(
        "positive_from",
        "smallest rating of a positive text",
        kind=_rating,
        default=DEFAULT.positive_from,
        metavar="RATING",
        advanced=True,
    ),
)
"""Options for the scale of ratings and for the smallest positive rating."""

TEST_SHARE = Option(
    "test_share",
    "share of the texts that go into the test set",
    kind=float,
    default=DEFAULT.test_share,
    metavar="SHARE",
    advanced=True,
)
LABELLING = (*RATING_SCALE, TEST_SHARE)
"""Options for the labels of ratings and for the test share. `apply_labelling` reads them."""

PRESET = Option(
    "preset",
    f"reference: the settings of a reference system: rows of {REFERENCE.row_length} words, only words of the letters "
    f"a-z, a vocabulary of {REFERENCE.vocabulary_size} words, no stopwords of NLTK; explicit options take precedence",
    choices=("reference",),
)
"""Option that selects different defaults for the options in SETTINGS."""

SETTINGS = (
    Option(
        "rows",
        "ragged: a row is a whole text; fixed: a row is cut or padded to --row-length words (ragged, or fixed with "
        "--row-length)",
        choices=("ragged", "fixed"),
    ),
    Option("row_length", f"maximum number of words in a fixed row ({FIXED.row_length})", kind=int, metavar="N"),
    Option(
        "words",
        f"letters: only a to z; tokens: also digits and punctuation, as in fastText's example ({DEFAULT.words})",
        choices=WORD_RULES,
    ),
    Option(
        "vocabulary_size",
        f"maximum number of words in the vocabulary (default: {DEFAULT.vocabulary_size}, usually all words; with fixed "
        f"rows: {FIXED.vocabulary_size})",
        kind=int,
        metavar="N",
    ),
    Option(
        "keep_duplicates",
        "write one row for every text, as in published training and test sets; by default, equal texts become one row",
        kind=bool,
    ),
    *LABELLING,
    Option(
        "stopwords",
        "words to remove. none: no word; nltk: NLTK's English list, and product, would, get; keep-negations: the "
        "same list without negations such as 'not'; FILE: the words of a file, one per line (none)",
        metavar="|".join((*STOPWORD_LISTS, "FILE")),
        advanced=True,
    ),
)
"""Options for the settings of a dataset. `read_settings` reads them."""


def read_settings(options: Namespace, classes: tuple[str, ...] = (), preset: str | None = None) -> Settings:
    """Return the settings from parsed options. Options that are not set have the defaults of `preset`.

    `classes` are the class names from the input options if there are more than two classes. Raises
    common.errors.DataError for values that contradict each other.
    """
    reference = preset is not None
    ragged = options.rows == "ragged"
    if options.rows is None:
        ragged = bool(classes) or not (reference or options.row_length is not None)
    usual = DEFAULT if ragged else FIXED
    if reference:
        usual = replace(REFERENCE, vocabulary_size=DEFAULT.vocabulary_size) if ragged else REFERENCE
        if options.words == "tokens":
            usual = replace(usual, stopwords="none")
    chosen = {name: getattr(options, name) for name in ("row_length", "words", "vocabulary_size", "stopwords")}
    return apply_labelling(
        options,
        replace(
            usual,
            **{name: value for name, value in chosen.items() if value is not None},
            ragged=ragged,
            duplicates=options.keep_duplicates,
            labelled=bool(classes),
            classes=classes,
        ),
    )


def apply_labelling(options: Namespace, settings: Settings) -> Settings:
    """Return `settings` with the values of the options in `LABELLING`. Raises DataError as `read_settings` does."""
    steps = round(1 / options.rating_step)
    return replace(
        settings,
        rating_steps=steps,
        rating_range=(in_steps(options.rating_range[0], steps), in_steps(options.rating_range[1], steps)),
        rating_fraction=options.rating_fraction,
        positive_from=in_steps(options.positive_from, steps),
        test_share=options.test_share,
    )


def read_stopwords(choice: str, words: str) -> frozenset[str]:
    """Return the stopwords for the value of --stopwords. A file of stopwords can have any address, such as s3://...;
    see `corpus.text.load_stopwords`."""
    if choice in STOPWORD_LISTS:
        return load_stopwords(choice, words)
    with readable(choice) as path:
        return load_stopwords(str(path), words)
