"""Lists the field names of known datasets, and finds the fields of a file that might be its text, rating or label.

Field names are compared without case, spaces, underscores and dashes, and without a prefix that ends with a dot
(`reviews.text`).
"""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import product
from typing import NamedTuple


class Layout(NamedTuple):
    """Text fields and value field of a known dataset.

    The value is a label if `labelled` is true, otherwise a rating.
    """

    dataset: str
    text: tuple[str, ...]
    value: str
    labelled: bool = False


LAYOUTS = (
    Layout("Amazon 2014 and 2018, SNAP", ("reviewText",), "overall"),
    Layout("Amazon 2023, McAuley Lab", ("text",), "rating"),
    Layout("Amazon's own files", ("review_headline", "review_body"), "star_rating"),
    Layout("Amazon in six languages", ("review_body",), "stars"),
    Layout("Yelp", ("text",), "stars"),
    Layout("Amazon polarity, Hugging Face", ("title", "content"), "label", labelled=True),
    Layout("IMDb and Yelp, Hugging Face", ("text",), "label", labelled=True),
    Layout("SST-2, GLUE", ("sentence",), "label", labelled=True),
    Layout("IMDb, Kaggle", ("review",), "sentiment", labelled=True),
    Layout("Amazon Fine Food, Kaggle", ("Text",), "Score"),
    Layout("women's clothing, Kaggle", ("Review Text",), "Rating"),
    Layout("TripAdvisor and drug reviews, Kaggle", ("Review",), "Rating"),
    Layout("Google Play, Kaggle", ("content",), "score"),
    Layout("restaurant reviews, Kaggle", ("Review",), "Liked", labelled=True),
    Layout("US airlines, Kaggle", ("text",), "airline_sentiment", labelled=True),
    Layout("Rotten Tomatoes, Kaggle", ("Phrase",), "Sentiment", labelled=True),
    Layout("Goodreads, UCSD", ("review_text",), "rating"),
)
_POLARITY = Layout("Amazon and Yelp polarity, with a header", ("title", "text"), "label", labelled=True)
"""Matches only a file without any other field, because in other files a title is not a part of the text."""


class Candidates(NamedTuple):
    """Fields of a file that might be its text, and fields that might be its value.

    A text can consist of several fields.
    """

    texts: Sequence[tuple[str, ...]]
    values: Sequence[str]


_SEPARATORS = re.compile(r"[\s_-]+")


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name.rpartition(".")[2]).casefold()


_TEXTS = (*dict.fromkeys(tuple(map(_plain, layout.text)) for layout in LAYOUTS), ("fulltext",))
"""Known text fields. In a tweet of more than 140 characters, `text` is cut, and `extended_tweet.full_text` is whole.

Source: https://docs.tweepy.org/en/latest/extended_tweets.html (2026-11-30).
"""
_LABELLED = {_plain(layout.value): layout.labelled for layout in LAYOUTS}


def candidates(names: Collection[str]) -> Candidates:
    """Return the fields that might be the text and the value.

    A text and a value with the same prefix are preferred, such as `text` and `stars` to `business.stars`. But a text
    inside the same object might be the better text, so it is a candidate, too.
    """
    prefixes = dict.fromkeys(["", *(name.rpartition(".")[0] for name in names)])
    found = {each: _among([name for name in names if name.rpartition(".")[0] == each]) for each in prefixes}
    whole = [prefix for prefix, each in found.items() if each.texts and each.values] or list(found)
    inside = [prefix for prefix in found if any(not of or f"{prefix}.".startswith(f"{of}.") for of in whole)]
    return Candidates(
        [text for prefix in inside for text in found[prefix].texts],
        [value for prefix in whole for value in found[prefix].values],
    )


def _among(names: Sequence[str]) -> Candidates:
    """Return the candidates among names that have the same prefix."""
    named: dict[str, list[str]] = defaultdict(list)
    for name in names:
        named[_plain(name)].append(name)
    texts = [text for text in _TEXTS if set(text) <= set(named)]
    texts = [text for text in texts if not any(set(text) < set(other) for other in texts)]
    if len(names) == len(named) and set(named) == {*_POLARITY.text, _POLARITY.value}:
        texts = [_POLARITY.text]
    return Candidates(
        [fields for text in texts for fields in product(*(named[each] for each in text))],
        [name for name in names if _plain(name) in _LABELLED],
    )


def is_labelled(value: str) -> bool:
    """Return whether a known value field has labels and not ratings."""
    return _LABELLED[_plain(value)]


def are_field_names(names: Collection[str], code: int | None) -> bool:
    """Return whether the cells of a first line are field names, and not the first record of a file without a header.

    If the class of all texts is known (`code`), no value field is needed.
    """
    found = candidates(names)
    return len(found.texts) == 1 if code is not None else bool(found.texts and found.values)
