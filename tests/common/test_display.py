"""Counts are shown with their nouns in singular or plural."""

import pytest

from common.display import plural


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1234, "1,234 rows")])
def test_plural_adds_an_s_unless_the_count_is_one(number: int, text: str) -> None:
    assert plural(number, "row") == text
