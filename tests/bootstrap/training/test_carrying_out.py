"""A run is followed to its end."""

from typing import Any
from unittest.mock import Mock

import pytest

from bootstrap.training.places.carrying_out import _follow
from common.errors import DataError, ShoalError


@pytest.mark.parametrize("error", [ShoalError("reader 0 ended 4 times by itself"), DataError("reader 0")])
def test_the_last_lines_of_the_record_are_shown_also_where_something_beside_the_run_fails(error: Exception) -> None:
    run: Any = Mock(is_over=Mock(side_effect=[False, error]))
    with pytest.raises(type(error)):
        _follow(Mock(pause=0), run, Mock())
    assert run.record.return_value.look.call_count == 2
