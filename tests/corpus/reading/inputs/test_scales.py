"""Ratings on scales other than 1 to 5 are read if the options give the scale. The scale is never guessed."""

from collections import Counter
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import LabelEncoder, MalformedLineError
from corpus.reading.inputs.values import check_scales
from jobs.job_settings import read_settings
from tests import oracle
from tests.jobs.test_job_settings import parsed


def settings_of(options: str) -> Settings:
    return read_settings(parsed(*options.split()))


HALVES = "--rating-step 0.5 --rating-range 0.5 5 --positive-from 3.5"
SCALES = [
    *("", "--rating-range 1 10 --positive-from 7", "--rating-range 0 100 --positive-from 61", HALVES),
    *("--rating-step 0.5", "--rating-fraction", f"{HALVES} --rating-fraction"),
    "--rating-fraction --rating-range 0 10 --positive-from 7",
]

NUMBERS = st.sampled_from([0, 0.5, 1, 1.0, 2.25, 3.5, 4, 4.5, 5, 7, 9.5, 10, 61, 100, -0.0, 1e300, 10**400, True, None])
WRITTEN = st.builds(
    "{}{}{}".format,
    st.sampled_from(["4", "4.0", "3.5", "0.5", "1e1", "10", "05", ".5", "", "-1", "x", "100", "5e-1"]),
    st.sampled_from(["", "", "/5", " / 5", "/5.0", "/10", "/ 100", "/", "//5", "/5/5", "/x", "\t/5", "/\u00a05", "/2"]),
    st.sampled_from(["", " ", "\t", "\u00a0"]),
)


@pytest.mark.parametrize("options", SCALES)
@settings(max_examples=50)
@given(value=NUMBERS | WRITTEN | st.text("0123456789./ e-", max_size=6))
def test_ratings_on_any_scale_equal_the_oracle(options: str, value: object) -> None:
    settings = settings_of(options)
    rules = oracle.Rules(
        rating_range=settings.rating_range, steps=settings.rating_steps, fraction=settings.rating_fraction
    )
    try:
        expected: object = oracle.rating_of(value, rules)
    except oracle.Malformed:
        expected = "bad"
    codes = LabelEncoder(settings)
    found: object = codes.known_codes.get(value) if not isinstance(value, bool) else None
    if found is None:
        try:
            found = codes.encode(value)
        except MalformedLineError:
            found = "bad"
    assert found == expected


MANY, ON_TEN = Counter(dict.fromkeys("12345", 80)), Counter(dict.fromkeys(("2", "4", "6", "8", "10"), 3))
FILES = {
    "a few bad ratings": ({"a": Counter({"5": 95, "9": 5})}, 0.05, False),
    "more bad ratings": ({"a": Counter({"5": 94, "9": 6})}, 0.05, True),
    "a small file on another scale": ({"a": MANY, "b": ON_TEN}, 0.05, True),
    "many malformed lines allowed": ({"a": MANY, "b": ON_TEN}, 0.6, False),
    "small files": ({"a": MANY, "b": Counter({"5": 8, "0": 2, "none": 9}), "c": Counter({"9": 9})}, 0.05, False),
}


@pytest.mark.parametrize("case", FILES)
def test_another_scale_of_a_file_is_reported_unless_it_has_few_bad_ratings(case, messages) -> None:
    found, share, refused = FILES[case]
    with messages.raises(DataError) if refused else nullcontext():
        check_scales(found, Settings(), share)
