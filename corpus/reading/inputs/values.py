"""Checks the labels or ratings at the beginnings of files against the options.

Do not guess the scale of ratings. On a scale up to 10, a 5 also fits 1 to 5: the rest would be malformed, and bad
reviews would count as good.
"""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import (
    LABEL_PAIRS,
    LABELS,
    LabelEncoder,
    MalformedLineError,
    class_name,
    rating_text,
    usual_label,
)
from corpus.reading.sources import ReadingOptions

_PAIRS = tuple({LABELS[negative], LABELS[positive]} for negative, positive in LABEL_PAIRS)
_MIN_KNOWN_SHARE = 0.95
_SHOWN_LETTERS = 40
_SHOWN_LABELS = 8
_MAX_LABEL_NUMBER = 2
"""Larger whole numbers are probably ratings."""
_MAX_LISTED_CLASSES = 32
"""More labels than this are hardly classes, and a list of them does not help."""
# A file of fewer ratings shows no scale, and a smaller share of other values may be mistakes.
_MIN_RATINGS, _MAX_BAD_SHARE_OF_A_FILE = 10, 0.2


def check_labels(learnt: Counter[str], tested: Counter[str], options: ReadingOptions) -> None:
    """Raise DataError if it is ambiguous which labels are positive.

    `learnt` and `tested` count the labels, as `label_text` returns them, in samples of the training files and of the
    test files. A single label is accepted, because the rest of the input may have the other label of its pair.
    """
    values = learnt + tested
    if options.positive_label is not None or options.classes or not values:
        return
    if are_pair(values) and (not tested or are_pair(tested)):
        return
    names = sorted(filter(None, {class_name(value) for value in values}), key=_name_order)
    several = ""
    if (
        all(value.isdecimal() and len(value) < _SHOWN_LETTERS for value in values)
        and max(map(int, values)) > _MAX_LABEL_NUMBER
    ):
        several = "; or if they are ratings, name their field with --rating-field"
    if 2 < len(names) <= _MAX_LISTED_CLASSES:
        several += f"; or name all classes, including those not seen here: --classes {shlex.join(names)}"
    raise DataError(
        f"the labels are {list_values(values)}, and it is not clear which is positive; name the positive one with "
        f"--positive-label VALUE (all others are then negative){several}"
    )


def are_pair(values: Counter[str]) -> bool:
    """Return whether nearly all of these labels belong to one known pair."""
    known = Counter({value: count for value, count in values.items() if usual_label(value) in LABELS})
    found = set(map(usual_label, known))
    return bool(found) and any(found <= pair for pair in _PAIRS) and known.total() >= _MIN_KNOWN_SHARE * values.total()


def check_classes(values: Counter[str], classes: Sequence[str], max_malformed: float) -> None:
    """Raise DataError if more than a share `max_malformed` of the labels is in no class."""
    others = Counter({value: count for value, count in values.items() if class_name(value) not in classes})
    if others and others.total() / values.total() > max_malformed:
        raise DataError(
            f"{others.total():,} of the first {values.total():,} labels are not in --classes: {list_values(others)}; "
            "add them, or skip their texts with a higher --max-malformed"
        )


def check_scales(found: Mapping[str, Counter[str]], settings: Settings, max_malformed: float) -> None:
    """Raise DataError if more than a share `max_malformed` of the ratings is invalid.

    It is also raised if more than a fifth of the numbers in one file, of at least 10, are invalid. `found` has the
    counts of the ratings, as written, by file address.
    """
    _check_scale(sum(found.values(), Counter()), settings, max_malformed)
    for address, values in found.items():
        numbers = Counter({value: count for value, count in values.items() if rating_text(value)[0] is not None})
        if numbers.total() >= _MIN_RATINGS:
            _check_scale(
                numbers,
                settings,
                max(max_malformed, _MAX_BAD_SHARE_OF_A_FILE),
                of=f"in {address}, unlike in other files, ",
            )


def _check_scale(values: Counter[str], settings: Settings, max_malformed: float, *, of: str = "") -> None:
    """Check these ratings; `of` begins the message."""
    encoder = LabelEncoder(settings)
    bad = Counter(values)
    for value in values:
        with suppress(MalformedLineError):
            encoder.encode(value)
            del bad[value]
    if not bad or bad.total() / values.total() <= max_malformed:
        return
    low, high = map(settings.in_units, settings.rating_range)
    raise DataError(
        f"{of}{bad.total():,} of the first {values.total():,} ratings are not on the scale from {low} to {high}, such "
        "as "
        f"{list_values(bad)}; give their scale with --rating-range LOW HIGH and --positive-from (--rating-step for "
        "halves, --rating-fraction for 4/5), or name another field with --rating-field, or labels with --label-field"
    )


def list_values(values: Counter[str]) -> str:
    """Return the most frequent labels or ratings with their counts, for a message."""
    listed = ", ".join(f"{value[:_SHOWN_LETTERS]!r} ({count})" for value, count in values.most_common(_SHOWN_LABELS))
    return listed + (", ..." if len(values) > _SHOWN_LABELS else "")


def _name_order(name: str) -> tuple[bool, int, str]:
    """Return a sort key: numbers first, by value, then all other names."""
    number = name.isascii() and name.isdigit()
    return not number, int(name) if number and len(name) < _SHOWN_LETTERS else 0, name
