"""Progress bars on a simulated terminal, and lines without one."""

import io
import re
import time
from contextlib import contextmanager, redirect_stderr

import pytest

from shoal.progress import Bars
from tests.waiting import until


class Terminal(io.StringIO):
    def isatty(self):
        return True


@contextmanager
def bars_on(terminal):
    with redirect_stderr(terminal), Bars(unit="row") as bars:
        yield bars


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
"""Colours and moves of the cursor."""


def last(terminal):
    """Return the last line, as it was drawn last."""
    return ESCAPES.sub("", terminal.getvalue()).rstrip().rpartition("\r")[2].strip()


def test_speed_and_remaining_time_follow_the_given_pace():
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 100_000)
        bars.begin_at(0)
        bars.pace(500.0)
        bars.at(40_000)  # all at once
        bars.tick()
        assert re.search(r"40%, 40,000 of 100,000, 500 rows/s, 02:00 left", last(terminal))


def test_the_speed_does_not_count_rows_of_earlier_runs():
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 100_000)
        bars.begin_at(90_000)
        bars.tick()
        assert re.search(r"90%, 90,000 of 100,000$", last(terminal))
        bars.pace(100.0)
        bars.begin_at(50_000)  # the ranks restarted, and their pace is unknown
        bars.tick()
        assert re.search(r"50%, 50,000 of 100,000$", last(terminal))


def test_a_slow_stage_shows_seconds_per_row():
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 100)
        bars.pace(0.5)
        bars.at(40)
        bars.tick()
        assert "2.0 s/row, " in last(terminal)


def test_a_stage_that_ends_early_is_not_shown_as_complete():
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 100)
        bars.at(40)
        bars.leave()
    assert "40%" in last(terminal)
    assert "100%" not in terminal.getvalue()


class Log(io.StringIO):
    """Standard error that is not a terminal."""


class DumbTerminal(Terminal):
    """Terminal that cannot overwrite its lines."""


@pytest.mark.parametrize("kind", [Log, DumbTerminal])
def test_without_a_terminal_progress_is_plain_lines(kind, monkeypatch):
    if kind is DumbTerminal:
        monkeypatch.setenv("TERM", "dumb")
    lines = kind()
    with redirect_stderr(lines), Bars(unit="row", line_seconds=0.001) as bars:
        bars.stage("prepare", 0)
        _wait_for("  prepare: 00:", lines)
        bars.stage("train", 100_000)
        bars.begin_at(0)
        bars.pace(500.0)
        bars.say(loss="0.345", step="12")
        bars.at(40_000)
        _wait_for("  train: 40%, 40,000 of 100,000, 500 rows/s, 02:00 left, loss=0.345, step=12\n", lines)
        bars.note("a sentence")
    assert "  a sentence\n" in lines.getvalue()
    assert not set("\r\x1b|") & set(lines.getvalue())
    printed = lines.getvalue()
    time.sleep(0.01)
    assert lines.getvalue() == printed


def test_the_first_line_waits_for_the_interval():
    lines = Log()
    with redirect_stderr(lines), Bars(line_seconds=1e6) as bars:
        bars.stage("train", 100)
        bars.at(40)
    assert lines.getvalue() == ""


def test_a_line_is_not_repeated():
    lines = Log()
    with redirect_stderr(lines), Bars(unit="node", line_seconds=0.001) as bars:
        bars.stage("train", 7)
        bars.pace(500.0)
        for done in (2, 3):
            bars.at(done)
            _wait_for(f"{done} of 7", lines)
            time.sleep(0.01)
    assert [line.partition(",")[0] for line in lines.getvalue().splitlines()] == ["  train: 29%", "  train: 43%"]


def test_a_stage_of_unknown_length_that_is_started_again_has_one_bar():
    terminal = Terminal()
    with bars_on(terminal) as bars:
        for _ in range(3):
            bars.stage("wait for UPDATE_IN_PROGRESS", 0)
    assert terminal.getvalue().count("\n") == 1


def test_names_notes_and_figures_are_no_markup(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("[red]copy[/red] :smile:", 10)
        bars.say(loss="[bold]1[/bold]")
        bars.note("[red]a note[/red] :smile: {}")
    shown = ESCAPES.sub("", terminal.getvalue())
    assert "[red]copy[/red] :smile: " in shown
    assert "loss=[bold]1[/bold]" in shown
    assert "  [red]a note[/red] :smile: {}\n" in shown


def test_a_long_note_is_not_wrapped_and_a_long_bar_is_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    with bars_on(terminal) as bars:
        bars.stage("train", 10)
        bars.say(loss="0.345 " * 20)
        bars.note("run this command: shoal train --local " + "--data words " * 9)
    lines = ESCAPES.sub("", terminal.getvalue()).splitlines()
    assert f"  run this command: shoal train --local {'--data words ' * 9}".rstrip() in [one.rstrip() for one in lines]
    assert max(len(one) for one in lines if "train " in one and "command" not in one) <= 40


def test_bars_of_finished_stages_remain():
    terminal = Terminal()
    with bars_on(terminal) as bars:
        for name in ("first", "second"):
            bars.stage(name, 10)
    kept = [line.rpartition("\r")[2] for line in ESCAPES.sub("", terminal.getvalue()).rstrip().split("\n")]
    assert [line.split()[0] for line in kept] == ["first", "second"]
    assert all("100%, 10 of 10" in line for line in kept)


def _wait_for(text, lines):
    until(lambda: text in lines.getvalue(), every=0.001)
