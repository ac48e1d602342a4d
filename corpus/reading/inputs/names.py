"""Finds the fields whose names say that they are the text, the rating or the label, however these names are spelled.

A name is known as it stands here; ignoring case, spaces, underscores and dashes; and so behind a prefix that ends in a
dot (`reviews.text`). The closest counts. What fits less closely is reported, too, because it may be what was meant.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import NamedTuple, TypeVar

TEXTS = (
    ("reviewText",),  # SNAP 2014 and 2018
    ("text",),  # SNAP 2023
    ("review_headline", "review_body"),  # Amazon's own files
    ("review_body",),
    ("title", "content"),  # the polarity sets with names
    ("content",),
    ("review",),
    ("sentence",),
)
"""Fields that are taken for the text."""
RATINGS = ("overall", "rating", "star_rating", "stars")
"""Fields that are taken for the rating."""
_SCORE = "score"
"""A field that is taken for the rating where no other one is."""
LABEL_FIELDS = ("label", "sentiment")
"""Fields that are taken for the label."""

_SEPARATORS = re.compile(r"[\s_-]+")


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).casefold()


_PLAIN_TEXTS = tuple(tuple(map(_plain, text)) for text in TEXTS)
_VALUES = tuple(map(_plain, (*RATINGS, *LABEL_FIELDS)))
_EXACT = {name: _plain(name) for names in (*TEXTS, RATINGS, LABEL_FIELDS) for name in names}
# SNAP's own field; in some files from others a `text` of another kind is beside it.
_FIRST = (_plain("reviewText"),)
_POLARITY_HEADER = {"label", "title", "text"}

_BESIDE = ("asin", "date", "summary", "timestamp", "title", "votes", "")
"""Plain names of fields that are beside a text and are hardly ever written in one, as those that end in `id`."""

_Named = Mapping[str, Sequence[str]]
"""Fields by their plain names, each of which several may have."""
_Text = tuple[str, ...]
_T = TypeVar("_T")
_LEVELS = 3


class Texts(NamedTuple):
    """What may be the text of a file, each one field or several: what fits its known name best, and what less."""

    likeliest: list[_Text]
    others: list[_Text]


class Values(NamedTuple):
    """What may be the rating or label of a file: what fits its known name best, and what less."""

    likeliest: list[str]
    others: list[str]


def known_texts(fields: Collection[str]) -> Texts:
    """The fields that may be the text; of known names that overlap the longer one counts."""
    by_level: list[list[_Text]] = [[] for _ in range(_LEVELS)]
    for level, named in _named(fields):
        by_level[level] += _texts(named, len(fields))
    found = [text for level in by_level for text in level]
    return Texts(*_ranked([_lengthened(level, found) for level in by_level]))


def known_values(fields: Collection[str], text: Sequence[str]) -> Values:
    """The fields that may be the rating or label beside this text; those behind its own prefix before all others."""
    by_level: list[list[str]] = [[] for _ in range(_LEVELS)]
    for level, named in _named([field for field in fields if field not in text]):
        by_level[level] += [field for name in _VALUES for field in named.get(name, ())]
    if not any(by_level):
        by_level[0] = [field for field in fields if _plain(field.rpartition(".")[2]) == _SCORE and field not in text]
    likeliest, others = _ranked(by_level)
    others += [
        field for field in fields if field not in (*text, *likeliest, *others) and _plain(field).endswith(_VALUES)
    ]
    if len(likeliest) > 1 and (prefix := _prefix(text[0])) and any(_prefix(field) == prefix for field in likeliest):
        others = [field for field in likeliest if _prefix(field) != prefix] + others
        likeliest = [field for field in likeliest if _prefix(field) == prefix]
    return Values(likeliest, others)


def is_value_name(field: str) -> bool:
    """Whether this is a known name of a rating or label."""
    return bool(known_values([field], ("",)).likeliest)


def are_known_names(fields: Collection[str]) -> bool:
    """Whether one of these is the known name of a text, and all others are known names, too."""
    texts = known_texts(fields).likeliest
    beside = [field for field in fields if len(texts) == 1 and field not in texts[0]]
    return len(texts) == 1 and all(
        is_value_name(field) or _plain(field) in _BESIDE or _plain(field).endswith("id") for field in beside
    )


def is_label_name(field: str) -> bool:
    """Whether a field with the known name of a value has labels."""
    return _plain(field.rpartition(".")[2]) in map(_plain, LABEL_FIELDS)


def _prefix(field: str) -> str:
    """What stands before the last dot, as a plain name; empty where there is no dot."""
    return _plain(field.rpartition(".")[0])


def _named(fields: Collection[str]) -> Iterator[tuple[int, _Named]]:
    """The fields by their plain names, the closest spelling first; fields of one prefix at a time."""
    yield 0, {_EXACT[field]: [field] for field in fields if field in _EXACT}
    by_prefix: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    plain: dict[str, list[str]] = defaultdict(list)
    for field in fields:
        plain[_plain(field)].append(field)
        if prefix := _prefix(field):
            by_prefix[prefix][_plain(field.rpartition(".")[2])].append(field)
    yield 1, plain
    yield from ((2, named) for named in by_prefix.values())


def _texts(named: _Named, width: int) -> list[_Text]:
    there = [text for text in _PLAIN_TEXTS if all(name in named for name in text)]
    widest = [text for text in there if not any(set(text) < set(other) for other in there)]
    if width == len(_POLARITY_HEADER) and set(named) == _POLARITY_HEADER:
        widest = [("title", "text")]
    elif set(widest) == {_FIRST, ("text",)}:
        widest = [_FIRST]
    return [fields for text in widest for fields in product(*(named[name] for name in text))]


def _lengthened(texts: Sequence[_Text], found: Sequence[_Text]) -> list[_Text]:
    """These texts, each that is only a part of others found, however those are spelled, replaced by them."""
    longer = ([other for other in found if set(text) < set(other)] or [text] for text in texts)
    return list(dict.fromkeys(chain.from_iterable(longer)))


def _ranked(by_level: Sequence[Sequence[_T]]) -> tuple[list[_T], list[_T]]:
    """What the first level has that has anything, and what only later ones have."""
    found = [list(level) for level in by_level if level] or [[]]
    later = dict.fromkeys(each for level in found[1:] for each in level)
    return found[0], [each for each in later if each not in found[0]]
