"""What files, buckets and nodes say reaches a terminal as text alone."""

import io
import re
import sys
from collections.abc import Callable

import pytest

from bootstrap import progress
from bootstrap.cli import output
from bootstrap.cli.output import table
from trainer.output.record import print_notice

HOSTILE = "red \x1b[31m\x9b2J\x07\u202eback\x00\r over"
SHOWN = "red ?[31m?2J??back?  over"
OWN = re.compile(r"\x1b\[\d+m")
"""The colour of a mark such as `shoal:`."""


def bars() -> None:
    with progress.Bars() as shown:
        shown.stage(HOSTILE, 0)
        shown.say(now=HOSTILE)
        assert shown._bar is not None
        sys.stderr.write(f"{shown._bar.line()}\n")  # as a thread does every ten seconds


@pytest.mark.parametrize(
    "prints",
    [
        lambda: output.say(HOSTILE),
        lambda: output.print_error(HOSTILE),
        lambda: output.print_warning(HOSTILE),
        lambda: output.show({}, HOSTILE, as_json=False),
        lambda: output.summary({}, [(HOSTILE, HOSTILE)], as_json=False),
        lambda: output.confirm(HOSTILE),
        lambda: progress.note(HOSTILE),
        lambda: print_notice(HOSTILE),
        bars,
    ],
)
def test_nothing_that_is_printed_steers_the_terminal(
    prints: Callable[[], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    prints()
    printed = OWN.sub("", "".join(capsys.readouterr()))
    assert SHOWN in printed
    assert printed.replace("\n", "").isprintable()


def test_a_name_with_a_newline_makes_no_row_of_a_table_and_no_second_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert table([("bucket\nstack", "deleted")]) == "bucket stack  deleted"
    progress.note("left out: a\nshoal: all is gone")
    assert capsys.readouterr().err == "  left out: a shoal: all is gone\n"
