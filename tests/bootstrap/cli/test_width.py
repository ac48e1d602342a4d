"""Output and help fit into 80 columns without broken words."""

import fcntl
import io
import os
import re
import shlex
import struct
import termios
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.aws import cdk
from bootstrap.cli import output
from bootstrap.cli.commands import COMMANDS
from bootstrap.cli.main import main
from bootstrap.cli.output import table
from bootstrap.lifecycle.deploy import DeployRequest, _interrupted_message
from bootstrap.nodes import fleet
from bootstrap.progress import Bars
from bootstrap.terminal import columns, wrapped
from common.display import join_lines
from infra import topology

WIDTH = 80
WORDS = st.lists(st.text("ab-/.", min_size=1, max_size=12), max_size=12).map(" ".join)


@given(WORDS, st.integers(1, 30), st.sampled_from(["", "  "]))
def test_lines_are_wrapped_only_between_words(text, width, indent) -> None:
    made = wrapped(indent + text, width)
    assert made.split() == text.split()
    assert all(len(line) <= width or len(line.split()) == 1 for line in made.split("\n"))


COMMAND = "aws ec2 create-default-subnet --region eu-central-1 --availability-zone eu-central-1a --output 'a b'"


@pytest.mark.parametrize(
    "text",
    [
        COMMAND,
        f"  {COMMAND}",
        f"shoal: a default subnet is missing in eu-central-1; create one: {COMMAND}",
        f"  {'word ' * 20}to end it: {COMMAND}",
        f"to end them sooner:\n  {COMMAND}\n  {COMMAND}",
        f"to see it: shoal status {'x' * 60}\nto end it: {COMMAND}",
        f"to see it first: shoal status it; to end it: {COMMAND}",
    ],
)
def test_a_command_is_not_wrapped_and_gets_its_own_line(text) -> None:
    made = wrapped(text, WIDTH)
    assert made.split() == text.split()
    lines = [line.strip() for line in made.split("\n")]
    assert lines.count(COMMAND) == text.count(COMMAND)
    assert [line for line in lines if len(line) > WIDTH] == [COMMAND] * text.count(COMMAND)


@pytest.mark.usefixtures("narrow")
def test_a_table_does_not_wrap_a_command() -> None:
    made = table([("starter", f"kept; to see more of it, type: {COMMAND}")], ("name", "why"))
    assert COMMAND in [line.strip() for line in made.split("\n")]


def test_commands_in_messages_about_a_deployment_in_progress_can_be_copied() -> None:
    starter = topology.load("starter", cdk.TOPOLOGIES)
    source = "/home/ada/all of my own topologies/" + "pair-of-nodes-" * 3 + ".yaml"
    request = DeployRequest(topology=starter, source=source, deployment="pair", owner="ada")
    stack = {"StackName": "Shoal-pair", "StackStatus": "CREATE_IN_PROGRESS"}
    for described in (None, stack):
        lines = wrapped(join_lines(_interrupted_message(request, described)), WIDTH).split("\n")
        typed = [shlex.split(line) for line in lines if line.strip().startswith("shoal deploy")]
        assert typed == [["shoal", "deploy", source, "--deployment", "pair", "--owner", "ada"]]


def test_commands_in_messages_about_running_nodes_can_be_copied() -> None:
    names = [f"Shoal-starter-Training{n}-{'0123456789abcdef' * 3}" for n in range(2)]
    state = {"name": "g", "size": 1, "desired": 1, "gpus": 1, "spot": False, "stays": False}
    groups = [fleet.GpuGroup(scaling_group=name, **state) for name in names]
    lines = [line.strip() for line in wrapped(join_lines(fleet.running_nodes_warning(groups)), WIDTH).split("\n")]
    commands = [shlex.split(line) for line in lines if line.startswith("aws ")]
    assert [command[command.index("--auto-scaling-group-name") + 1] for command in commands] == names


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.booleans())
def test_a_table_fits_and_keeps_its_words(rows, headed) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "columns", lambda _: 40)
        made = table(rows, ("a head", "b", "c") if headed else ())
    words = sorted(word for row in rows for cell in row for word in cell.split())
    assert sorted(made.split())[: len(words)] == words or set(words) <= set(made.split())
    if headed:
        assert all(len(line) <= 40 for line in made.split("\n"))


def test_output_without_a_terminal_is_not_wrapped(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert table([("name", "word " * 40)], stream=io.StringIO()) == "name  " + ("word " * 40).rstrip()


@pytest.mark.parametrize(("variable", "width"), [("40", 40), ("0", WIDTH), ("", WIDTH)])
def test_columns_returns_the_width_of_terminals_only(variable, width, terminal, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", variable)
    with open(terminal[1], "w", closefd=False) as screen, (tmp_path / "file").open("w") as file:
        assert (columns(screen), columns(file)) == (width, None)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("verb", [(), *((verb,) for verb in COMMANDS), ("dataset", "info"), ("train", "--help-all")])
def test_help_fits_the_terminal(verb, capsys) -> None:
    assert main([*verb, "--help"]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert [line for line in text.splitlines() if line.endswith("-")] == []


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo-terminal of 80 columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    yield ours, theirs
    os.close(ours)


def drawn_on(terminal: int) -> str:
    """Return what was written to a terminal before its other end was closed."""
    drawn = b""
    with suppress(OSError):
        while more := os.read(terminal, 1 << 16):
            drawn += more
    return drawn.decode()


@pytest.mark.parametrize(
    ("environment", "escapes"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)]
)
@pytest.mark.parametrize("typed", ["plan --help", "plan no-such-topology"])
def test_only_capable_terminals_get_escape_codes(typed, environment, escapes, terminal, monkeypatch) -> None:
    ours, theirs = terminal
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    with open(theirs, "w", closefd=False) as screen, redirect_stdout(screen), redirect_stderr(screen):
        main(typed.split())
    os.close(theirs)
    assert ("\x1b" in drawn_on(ours)) == escapes


def test_a_bar_shows_as_many_figures_as_fit(terminal) -> None:
    ours, theirs = terminal
    figures = {"loss": "0.345", "balanced": "97%", "cost so far": "$1.23", "epoch": "3"}
    with open(theirs, "w", closefd=False) as screen, redirect_stderr(screen), Bars(unit="row") as bars:
        bars.stage("train", 24_000_000)
        bars.pace(5300.0)
        bars.say(**figures, **{"balanced accuracy": "88.1%", "split": "100+90+80+70"})
        bars.at(4_000_000)
        bars.tick()
        bars.note("a node was lost, so " + "the work continues without it " * 5)
        bars.leave()
    os.close(theirs)
    lines = [line.removesuffix("\x1b[A") for line in drawn_on(ours).replace("\r", "\n").split("\n")]
    assert [line for line in lines if len(line) > WIDTH] == []
    shown = [line for line in lines if "loss=" in line]
    assert {line.rpartition("loss=")[2].rstrip() for line in shown} == {"0.345]"}
    assert all(re.search(r"\|[^|]{4,}\|", line) for line in shown)
