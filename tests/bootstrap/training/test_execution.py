"""Tests of following a run to its end."""

from unittest.mock import Mock

import pytest

from bootstrap.training.places.execution import _follow
from common.errors import DataError, ShoalError


@pytest.mark.parametrize("error", [ShoalError("reader 0 died 4 times"), DataError("reader 0")])
def test_the_last_lines_of_the_record_are_shown_even_if_a_reader_fails(error):
    run = Mock(is_over=Mock(side_effect=[False, error]))
    with pytest.raises(type(error)):
        _follow(Mock(pause=0), run, Mock())
    assert run.record.return_value.update.call_count == 2
