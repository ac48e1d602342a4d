"""Refuses ratings outside the scale of the settings, with a message that names the options that read them.

Do not guess the scale. On a scale up to 10 a 5 also fits 1 to 5: the rest would be malformed, and bad reviews would
count as good. So the user gives the scale.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import ceil

from common.errors import DataError
from corpus.dataset_settings import RATING_STEPS, Settings, in_steps
from corpus.reading.formats import Codes, MalformedLineError, rating_text

_USUAL, _LARGE = 5, (10, 100)
# What occurs less often is no sign of a scale.
_RARE = 0.005
# A file of fewer ratings shows no scale, and a smaller share of others may be mistakes.
_FEW, _MOST_OF_A_FILE = 10, 0.2
_SHOWN = 4
_SHOWN_LETTERS = 40


class ScaleError(DataError):
    """Ratings that the settings do not read; `options` are those that would, where they are known."""

    def __init__(self, sentence: str, options: tuple[str, ...]) -> None:
        super().__init__(sentence + (f"; options that read them: {' '.join(options)}" if options else ""))
        self.sentence = sentence
        self.options = options


def check_scale(values: Counter[str], settings: Settings, max_malformed: float) -> None:
    """Raise ScaleError where a larger share of the ratings than `max_malformed` is not valid by the settings.

    `values` are ratings as they are written, with their counts.
    """
    codes = Codes(settings)
    bad = Counter({value: count for value, count in values.items() if not _reads(codes.code_of, value)})
    if not bad or bad.total() / values.total() <= max_malformed:
        return
    rare = values.total() * _RARE
    options = _options([value for value, count in values.items() if count >= rare], settings)
    listed = ", ".join(f"{value[:_SHOWN_LETTERS]!r} ({count})" for value, count in bad.most_common(_SHOWN))
    low, high = map(settings.in_units, settings.rating_range)
    way = "" if options else "; name another field by --rating-field, or by --label-field if these are labels"
    raise ScaleError(
        f"{bad.total():,} of the first {values.total():,} ratings are not from {low} to {high}, such as {listed}{way}",
        options,
    )


def check_scales(found: Mapping[str, Counter[str]], settings: Settings, max_malformed: float) -> None:
    """As `check_scale`, for the ratings of all files together, and then for the numbers of each, by its address."""
    check_scale(sum(found.values(), Counter()), settings, max_malformed)
    for address, values in found.items():
        numbers = Counter({value: count for value, count in values.items() if rating_text(value)[0] is not None})
        if numbers.total() >= _FEW:
            try:
                check_scale(numbers, settings, max(max_malformed, _MOST_OF_A_FILE))
            except ScaleError as error:
                raise ScaleError(
                    f"in {address} {error.sentence}; other files are on that scale: write this one on it, too, or "
                    "leave it out",
                    (),
                ) from error


def _reads(of: Callable[[object], int], value: str) -> bool:
    try:
        of(value)
    except MalformedLineError:
        return False
    return True


def _options(values: Sequence[str], asked: Settings) -> tuple[str, ...]:
    """The additional options that would read all values that are numbers; none where their scale is not a usual one, or
    not possible in a dataset."""
    found = [rating_text(value) for value in values]
    fractions = {int(out_of) for _, out_of in found if out_of is not None}
    numbers = [number for number, _ in found if number is not None]
    if not numbers or len(fractions) > 1 or 2 * len(numbers) < len(values):
        return ()
    steps = next((n for n in RATING_STEPS if not any(round(number * n, 6) % 1 for number in numbers)), 0)
    low, seen = min(*numbers, 1), ceil(max(numbers))
    of_own = 2 < len(set(numbers)) <= _USUAL and seen > _LARGE[0]  # such as 10, 20, 30, 40 and 50
    low = min(numbers) if of_own else low
    high = next(iter(fractions), None) or (seen if of_own or (low < 1 and seen < _USUAL) else _highest(seen))
    if high is None or seen > high or low < 0 or not steps:
        return ()
    positive, steps = high * 3 // 5 + 1, max(steps, asked.rating_steps)
    scale = (in_steps(low, steps), in_steps(high, steps))
    try:
        Settings(rating_steps=steps, rating_range=scale, positive_from=in_steps(positive, steps))
    except DataError:
        return ()
    before = [value / asked.rating_steps for value in asked.rating_range]
    return (
        *(["--rating-step", f"{1 / steps:g}"] if steps > asked.rating_steps else []),
        *(["--rating-fraction"] if fractions and not asked.rating_fraction else []),
        *(["--rating-range", f"{low:g}", str(high)] if [low, high] != before else []),
        *(["--positive-from", str(positive)] if high != before[1] else []),
    )


def _highest(seen: int) -> int | None:
    """The largest rating of a scale of which this is the largest that was seen: of a short one that itself."""
    return max(seen, _USUAL) if seen <= _LARGE[0] else next((each for each in _LARGE if seen <= each), None)
