"""Counts are shown with their nouns in singular or plural, and untrusted text without control characters."""

import pytest

from common.display import is_printable, join_lines, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m\x9b2J\x07", "a?[31m?2J?"),
        ("a\nb\tc\r\x85\u2028d", "a b c   d"),
        ("\u202eback \u2066in \u200fand\u061c", "?back ?in ?and?"),
        ("\udcff\uffff", "??"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f4bb\u00a0\u00ad caf\u00e9", None),
    ],
    ids=["escape sequences", "line breaks", "order of characters", "not UTF-8", "words and emoji"],
)
def test_only_characters_that_control_a_terminal_or_a_page_are_replaced(text: str, shown: str | None) -> None:
    assert printable(text) == (shown or text)
    assert is_printable(text) == (shown is None)


def test_a_line_break_in_a_line_adds_no_line() -> None:
    assert join_lines(["a\nb", "c"]) == "a b\nc"
