"""Generates reviews from a seed, in SNAP's JSON format, with duplicates, conflicting ratings and malformed lines.

A model can learn the sentiment of these reviews, but not from single words. Each clause has a positive or negative
adjective, and "hardly" or "never" before an adjective negates it. The majority of the clauses decides the rating. The
negating words must not be stopwords, because preprocessing removes stopwords.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus.text import words


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PRAISE = _listed(
    "good great excellent sturdy comfortable reliable beautiful accurate quiet sharp smooth elegant durable bright "
    "generous clever fresh crisp handy solid"
)
BLAME = _listed(
    "bad poor awful flimsy painful faulty ugly inaccurate noisy blunt rough clumsy fragile dim stingy silly stale "
    "blurry awkward loose"
)
TURNS = ("hardly", "never", "scarcely", "barely", "neither")
_ASPECTS = _listed(
    "battery handle screen strap sound colour case cable lid blade fabric zipper button hinge lens motor filter "
    "speaker brush seat stand wheel label charger manual package price shape grip size"
)
_FILLERS = (
    "bought for my cousin's birthday in spring",
    "arrived on a rainy Tuesday",
    "used it twice a week since",
    "we keep one in the kitchen",
    "comparing it to last year's model",
    "the neighbours asked about it",
    "ordered together with two others",
    "it came in a plain box &amp; bubble wrap",
)
_SUFFIXES = ("", "", "", "!", " :)", " caf\u00e9 style", " &quot;wow&quot;", " \u2014 that\u2019s it")

_TURNED = 0.35
_CLAUSES = (3, 9)
_RATINGS_BAD, _RATINGS_GOOD = (1, 2, 3), (4, 5)
_GOOD = 0.6
_DUPLICATES = 0.15
_CONFLICTS = 0.1
_MALFORMED = (
    '{"reviewText": "cut in the mid',
    '{"overall": 5.0, "asin": "B000"}',
    '{"reviewText": 5, "overall": 4.0}',
    '{"reviewText": "without a rating"}',
    '{"reviewText": "rated too high", "overall": 11}',
    '{"reviewText": "half a star", "overall": 3.5}',
    '{"reviewText": "no number", "overall": NaN}',
    '["a list", 5]',
    "not JSON at all",
)


@dataclass(frozen=True, kw_only=True)
class WrittenReviews:
    """Counts of a generated file, to compare with the counts that preprocessing reports."""

    lines: int
    malformed: int
    distinct: int
    conflicting: int


def write_reviews(path: Path, *, texts: int, seed: int = 0) -> WrittenReviews:
    """Write `texts` distinct reviews, mixed with duplicates, conflicting ratings and malformed lines."""
    random_ = random.Random(seed)  # noqa: S311
    lines: list[str] = []
    distinct: set[str] = set()  # without punctuation: texts that differ only in punctuation are duplicates
    conflicting = 0
    while len(distinct) < texts:
        text, rating = _review(random_)
        cleaned = " ".join(words(text))
        if cleaned in distinct:
            continue
        distinct.add(cleaned)
        lines.append(_line(random_, text, rating))
        if random_.random() < _DUPLICATES:
            again = random_.randint(1, 4)
            conflict = random_.random() < _CONFLICTS
            conflicting += conflict
            other = 1 + rating % 5
            lines += [_line(random_, text, other if conflict else rating) for _ in range(again)]
    malformed = max(len(_MALFORMED), texts // 200)
    lines += [_MALFORMED[number % len(_MALFORMED)] for number in range(malformed)]
    random_.shuffle(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return WrittenReviews(lines=len(lines), malformed=malformed, distinct=texts, conflicting=conflicting)


def _review(random_: random.Random) -> tuple[str, int]:
    good = random_.random() < _GOOD
    clauses = random_.randrange(*_CLAUSES, 2)
    against = random_.randint(0, (clauses - 1) // 2)
    moods = [not good] * against + [good] * (clauses - against)
    random_.shuffle(moods)
    parts = list(_parts(random_, moods))
    rating = random_.choice(_RATINGS_GOOD if good else _RATINGS_BAD)
    return ". ".join(parts) + random_.choice(_SUFFIXES), rating


def _parts(random_: random.Random, moods: list[bool]) -> Iterator[str]:
    for mood in moods:
        turned = random_.random() < _TURNED
        adjective = random_.choice(PRAISE if mood != turned else BLAME)
        turn = f"{random_.choice(TURNS)} " if turned else ""
        yield f"The {random_.choice(_ASPECTS)} is {turn}{adjective}"
        if random_.random() < 0.3:
            yield random_.choice(_FILLERS)


def _line(random_: random.Random, text: str, rating: int) -> str:
    fields = {
        "reviewerID": f"A{random_.getrandbits(40):010X}",
        "asin": f"B{random_.getrandbits(32):08X}",
        "reviewText": text,
        "overall": float(rating),
        "unixReviewTime": random_.randrange(9 * 10**8, 14 * 10**8),
    }
    return json.dumps(fields, ensure_ascii=random_.random() < 0.5)
