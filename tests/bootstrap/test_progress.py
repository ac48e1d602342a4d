"""Bars on a terminal of the test's own."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from bootstrap.progress import Bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def bars_on(terminal: Terminal) -> Iterator[Bars]:
    with redirect_stderr(terminal), Bars(unit="row") as bars:
        yield bars


def last(terminal: Terminal) -> str:
    return terminal.getvalue().rstrip().rpartition("\r")[2].strip()


def test_speed_and_remaining_time_follow_the_given_pace() -> None:
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 100_000)
        bars.begin_at(0)
        bars.pace(500.0)
        bars.at(40_000)  # heard of at once
        bars.tick()
        assert re.search(r"40%.* 40\.0k/100k \[00:00<02:00, 500row/s\]", last(terminal))


def test_rows_of_earlier_runs_do_not_count_for_the_speed() -> None:
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 100_000)
        bars.begin_at(90_000)
        bars.tick()
        assert re.search(r"90%.* 90\.0k/100k \[00:00<\?, \?row/s\]", last(terminal))
        bars.pace(100.0)
        bars.begin_at(50_000)  # ranks that started again, whose pace is not known yet
        bars.tick()
        assert re.search(r"50%.* 50\.0k/100k \[00:00<\?, \?row/s\]", last(terminal))


def test_a_stage_that_ends_early_is_not_shown_as_complete() -> None:
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 100)
        bars.at(40)
        bars.leave()
    assert "40%" in last(terminal)
    assert "100%" not in terminal.getvalue()
