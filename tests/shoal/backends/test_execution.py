"""Tests of following a run to its end."""

from unittest.mock import MagicMock, Mock

import pytest

from common.errors import DataError, ShoalError
from common.progress import reporting
from shoal.backends.execution import _follow, execute
from shoal.backends.place import RunResult


@pytest.mark.parametrize("error", [ShoalError("reader 0 died 4 times"), DataError("reader 0")])
def test_the_last_lines_of_the_record_are_shown_even_if_a_reader_fails(error):
    run = Mock(is_over=Mock(side_effect=[False, error]))
    with pytest.raises(type(error)):
        _follow(Mock(pause=0), run)
    assert run.record.return_value.update.call_count == 2


def test_files_that_were_not_fetched_are_noted_also_if_a_run_that_has_a_summary_fails(tmp_path):
    place, run = Mock(pause=0), MagicMock(**{"is_over.return_value": True, "spent.return_value": None})
    shown = Mock()
    place.name, run.config.output, run.config.resume = "here", tmp_path, False
    failed = {"failure": ShoalError("died"), "details": {"refused": ["x"]}, "launch": {}}
    run.collect.return_value = RunResult(summary={"stopped": True}, **failed)
    with reporting(shown), pytest.raises(ShoalError, match="died"):
        execute(place, run)
    shown.note.assert_called_once_with("not fetched: x")
