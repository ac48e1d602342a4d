"""Checks that the labels or ratings in the beginnings of files agree with the options.

Do not guess the scale of ratings. Ratings on a scale up to 10 can also be valid from 1 to 5. With the wrong scale,
ratings above 5 would be malformed, and bad reviews would count as good.
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
    label_key,
    rating_text,
)
from corpus.reading.sources import ReadingOptions
from corpus.reading.tally import list_values

_PAIRS = tuple({LABELS[negative], LABELS[positive]} for negative, positive in LABEL_PAIRS)
_MIN_KNOWN_SHARE = 0.95
_SHOWN_LETTERS = 40
_MAX_LABEL_NUMBER = 2
"""If labels are integers and one is larger than this number, they are probably ratings."""
_MAX_LISTED_CLASSES = 32
"""Maximum number of labels that a message suggests as classes.

More labels are hardly ever classes, and a long list does not help.
"""
# A file with fewer ratings does not show its scale, and a smaller share of invalid ratings might be mistakes.
_MIN_RATINGS, _MAX_BAD_SHARE_OF_A_FILE = 10, 0.2


def check_labels(learned: Counter[str], tested: Counter[str], options: ReadingOptions) -> None:
    """Raise DataError if it is ambiguous which labels are positive.

    `learned` has the counts of the labels in the beginnings of the training files. `tested` has these counts for the
    test files. Labels are as `label_text` returns them. A single label of a known pair is accepted, because the rest of
    the input can have the other label of the pair.
    """
    values = learned + tested
    if options.positive_label is not None or options.classes or not values:
        return
    if are_pair(values) and (not tested or are_pair(tested)):
        return
    by_key = {label_key(value): class_name(value) for value in sorted(values, reverse=True)}
    names = sorted(filter(None, by_key.values()), key=_name_order)
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
    """Return whether nearly all labels, by their counts, belong to the same known pair."""
    known = Counter({value: count for value, count in values.items() if label_key(value) in LABELS})
    found = set(map(label_key, known))
    return bool(found) and any(found <= pair for pair in _PAIRS) and known.total() >= _MIN_KNOWN_SHARE * values.total()


def check_classes(values: Counter[str], classes: Sequence[str], max_malformed: float) -> None:
    """Raise DataError if more than a share `max_malformed` of the labels is not in `classes`."""
    keys = set(map(label_key, classes))
    others = Counter({value: count for value, count in values.items() if label_key(value) not in keys})
    if others and others.total() / values.total() > max_malformed:
        raise DataError(
            f"{others.total():,} of the first {values.total():,} labels are not in --classes: {list_values(others)}; "
            "add them, or skip their texts with a higher --max-malformed"
        )


def check_scales(found: Mapping[str, Counter[str]], settings: Settings, max_malformed: float) -> None:
    """Raise DataError if more than a share `max_malformed` of the ratings is invalid.

    DataError is also raised if a file has at least 10 numbers and more than a fifth of them are invalid. `found` maps
    the address of each file to counts of its ratings, as they are written in the file.
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
    """Raise DataError if more than a share `max_malformed` of these ratings is invalid.

    The message begins with `of`.
    """
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


def _name_order(name: str) -> tuple[bool, int, str]:
    """Return a sort key that puts numbers first, by their value, and all other names after them."""
    number = name.isascii() and name.isdigit()
    return not number, int(name) if number and len(name) < _SHOWN_LETTERS else 0, name
