"""Numbers of things in sentences."""

import pytest

from common.display import plural


@pytest.mark.parametrize(("number", "said"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1234, "1,234 rows")])
def test_one_is_no_plural(number: int, said: str) -> None:
    assert plural(number, "row") == said
