"""Refuses ratings outside the scale of the settings, with a message that names the options that give another.

Do not guess the scale. On a scale up to 10 a 5 also fits 1 to 5: the rest would be malformed, and bad reviews would
count as good.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import Codes, MalformedLineError, rating_text
from corpus.reading.inputs.labels import list_values

# A file of fewer ratings shows no scale, and a smaller share of others may be mistakes.
_FEW, _MOST_OF_A_FILE = 10, 0.2


def check_scale(values: Counter[str], settings: Settings, max_malformed: float, *, of: str = "") -> None:
    """Raise DataError where a larger share of the ratings than `max_malformed` is not valid by the settings.

    `values` are ratings as they are written, with their counts; `of` begins the sentence.
    """
    codes = Codes(settings)
    bad = Counter(values)
    for value in values:
        with suppress(MalformedLineError):
            codes.code_of(value)
            del bad[value]
    if not bad or bad.total() / values.total() <= max_malformed:
        return
    low, high = map(settings.in_units, settings.rating_range)
    raise DataError(
        f"{of}{bad.total():,} of the first {values.total():,} ratings are not from {low} to {high}, such as "
        f"{list_values(bad)}; give their scale by --rating-range LOW HIGH and --positive-from (--rating-step for "
        "halves, --rating-fraction for 4/5), or name another field by --rating-field, or labels by --label-field"
    )


def check_scales(found: Mapping[str, Counter[str]], settings: Settings, max_malformed: float) -> None:
    """As `check_scale`, for the ratings of all files together, and then for the numbers of each, by its address."""
    check_scale(sum(found.values(), Counter()), settings, max_malformed)
    for address, values in found.items():
        numbers = Counter({value: count for value, count in values.items() if rating_text(value)[0] is not None})
        if numbers.total() >= _FEW:
            check_scale(numbers, settings, max(max_malformed, _MOST_OF_A_FILE), of=f"in {address}, unlike others, ")
