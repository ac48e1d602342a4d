"""Text from files, buckets and nodes cannot control the terminal; templates and tables of results."""

import io
import re
import sys

import pytest

from common.display import is_printable
from common.progress import reporter
from shoal import progress
from shoal.cli import output
from shoal.cli.output import table

HOSTILE = "red \x1b[31m\x9b2J\x07\u202eback\x00\r over"
SHOWN = "red ?[31m?2J??back?  over"
OWN = re.compile(r"\x1b\[\d+m")
"""Colour codes of Shoal itself, such as of the mark `shoal:`."""


def bars() -> None:
    with progress.Bars() as shown:
        shown.stage(HOSTILE, 0)
        shown.say(now=HOSTILE)
        sys.stderr.write(f"{shown._stage.name}: {shown._stage}\n")  # as the thread of `Bars` does


def notice() -> None:
    from trainer.output.reporter import print_notice

    print_notice(HOSTILE)


@pytest.mark.parametrize(
    "prints",
    [
        lambda: output.say(HOSTILE),
        lambda: output.print_error(HOSTILE),
        lambda: output.print_warning(HOSTILE),
        lambda: output.print_result(output.Result({}, [HOSTILE])),
        lambda: output.print_result(output.Result({}, [[(HOSTILE, HOSTILE)]])),
        lambda: output.print_result(output.Result({"a": HOSTILE}, [{"a": "{a}"}])),
        lambda: output.confirm(HOSTILE),
        lambda: reporter().note(HOSTILE),
        notice,
        bars,
    ],
)
def test_output_contains_no_control_characters(prints, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    prints()
    printed = OWN.sub("", "".join(capsys.readouterr()))
    assert SHOWN in printed
    assert is_printable(printed.replace("\n", ""))


def test_a_newline_in_a_name_adds_no_line(capsys) -> None:
    assert table([("bucket\nstack", "deleted")]) == "bucket stack  deleted"
    for prints, before in ((reporter().note, "  "), (output.say, ""), (output.print_error, "shoal: ")):
        prints("left out: a\nshoal: all is gone")
        assert OWN.sub("", capsys.readouterr().err) == f"{before}left out: a shoal: all is gone\n"


CONTENT = {"spent": 3.5, "runs": [{"run": "a", "bytes": 1500, "ends": None}, {"run": "b", "bytes": None}], "why": None}


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"spent": "{spent:dollars}", "why": "{why}", "gone": "{gone.so}"}, "spent  $3.50"),
        ({"runs": lambda content: f"{len(content['runs'])}", "ends": "{why:utc_time}"}, "runs  2\nends  -"),
        (output.Table("runs", {"run": "{run}", "size": "{bytes:size}"}), "run    size\n---  ------\na    1.5 kB\nb"),
        ("a sentence", "a sentence"),
    ],
)
def test_templates_show_fields_of_the_content(part, shown, capsys) -> None:
    assert output.print_result(output.Result(CONTENT, [part], status=1)) == 1
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown.split("\n")


class Screen(io.StringIO):
    """Terminal."""

    def isatty(self) -> bool:
        return True


ROWS = [("a", "a sentence with a long-hyphenated word")]


def test_the_last_column_of_a_table_with_heads_fits_the_terminal(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    lines = table(ROWS, ("name", "why"), ruled=True, stream=Screen()).splitlines()
    assert [line.split() for line in lines] == [
        ["name", "why"],
        ["----", "-" * 24],
        ["a", "a", "sentence", "with", "a"],
        ["long-hyphenated", "word"],
    ]
    for stream, heads in ((io.StringIO(), ("name", "why")), (Screen(), ())):
        assert "a  " in table(ROWS, heads, stream=stream).splitlines()[-1]


def test_a_long_word_is_not_divided(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    path = "/a/folder/with/a/long/name/in/another/folder"
    lines = table([("a", f"see {path} again")], ("name", "why"), stream=Screen()).splitlines()
    assert any(path in line for line in lines)


def test_columns_of_wide_characters_are_aligned() -> None:
    assert table([("日本", "a"), ("x", "[bold]b[/bold] :smile:")]) == "日本  a\nx     [bold]b[/bold] :smile:"


@pytest.mark.parametrize(
    ("environment", "escapes"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)]
)
def test_only_capable_terminals_get_escape_codes(environment, escapes, monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    output.print_error("a sentence")
    assert ("\x1b" in screen.getvalue()) == escapes
