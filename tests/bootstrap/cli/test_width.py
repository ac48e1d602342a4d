"""What a person reads fits into 80 columns, and no word of it is broken."""

import fcntl
import io
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.aws import cdk
from bootstrap.cli import dataset, destroy, output, status, train
from bootstrap.cli.commands import COMMANDS
from bootstrap.cli.main import main
from bootstrap.cli.output import summary, table
from bootstrap.lifecycle.deploy import DeployRequest, _interrupted_message
from bootstrap.lifecycle.status import GroupStatus, Status
from bootstrap.nodes import fleet
from bootstrap.removal.sweep import FoundResource
from bootstrap.terminal import columns, wrapped
from infra import topology
from tests.bootstrap.cli.test_train import QUICK, SLOW, node
from tests.bootstrap.cli.test_train import summary as trained

WIDTH = 80
WORDS = st.lists(st.text("ab-/.", min_size=1, max_size=12), max_size=12).map(" ".join)


def too_long(text: str) -> list[str]:
    """The lines that do not fit although they are more than a word."""
    return [line for line in text.splitlines() if len(line) > WIDTH and len(line.split()) > 1]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is for a terminal of 80 columns, whatever it is caught by."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for module in (output, dataset):
        monkeypatch.setattr(module, "columns", lambda _: WIDTH)


@given(WORDS, st.integers(1, 30), st.sampled_from(["", "  "]))
def test_a_line_is_broken_between_words_alone(text: str, width: int, indent: str) -> None:
    made = wrapped(indent + text, width)
    assert made.split() == text.split()
    assert all(len(line) <= width or len(line.split()) == 1 for line in made.split("\n"))


COMMAND = "aws ec2 create-default-subnet --region eu-central-1 --availability-zone eu-central-1a --output 'a b'"


@pytest.mark.parametrize(
    "text",
    [
        COMMAND,
        f"  {COMMAND}",
        f"shoal: a default subnet is missing in eu-central-1; make one by: {COMMAND}",
        f"  error: zone: a network in 3 zones is to be made, CloudFormation names only one; make another: {COMMAND}",
        f"GPU nodes may still run; to end them sooner, type:\n  {COMMAND}\n  {COMMAND}",
        f"look at it by: shoal status {'x' * 60}\nor end it by: {COMMAND}",
        f"to look at it first: shoal status it; to end it: {COMMAND}",
    ],
)
def test_a_command_stays_whole_on_a_line_of_its_own(text: str) -> None:
    made = wrapped(text, WIDTH)
    assert made.split() == text.split()
    lines = [line.strip() for line in made.split("\n")]
    assert lines.count(COMMAND) == text.count(COMMAND)
    assert [line for line in lines if len(line) > WIDTH] == [COMMAND] * text.count(COMMAND)


def test_a_table_does_not_break_a_command_either() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "columns", lambda _: WIDTH)
        made = table([("starter", f"kept; to see more of it, type: {COMMAND}")], ("name", "why"))
    assert COMMAND in [line.strip() for line in made.split("\n")]


def test_commands_in_messages_about_a_deployment_in_progress_can_be_copied() -> None:
    wanted = topology.load("starter", cdk.TOPOLOGIES)
    source = "/home/ada/all of my own topologies/" + "pair-of-nodes-" * 3 + ".yaml"
    request = DeployRequest(topology=wanted, source=source, deployment="pair", owner="ada")
    stack = {"StackName": "Shoal-pair", "StackStatus": "CREATE_IN_PROGRESS"}
    for found in (None, stack):
        lines = wrapped(_interrupted_message(request, found), WIDTH).split("\n")
        typed = [shlex.split(line) for line in lines if line.strip().startswith("shoal deploy")]
        assert typed == [["shoal", "deploy", source, "--deployment", "pair", "--owner", "ada"]]


def test_commands_in_messages_about_running_nodes_can_be_copied() -> None:
    names = [f"Shoal-starter-Training{n}-{'0123456789abcdef' * 3}" for n in range(2)]
    groups = [
        fleet.GpuGroup(name="g", scaling_group=name, size=1, desired=1, gpus=1, spot=False, stays=False)
        for name in names
    ]
    lines = [line.strip() for line in wrapped(fleet.running_nodes_warning(groups), WIDTH).split("\n")]
    commands = [shlex.split(line) for line in lines if line.startswith("aws ")]
    assert [command[command.index("--auto-scaling-group-name") + 1] for command in commands] == names


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5), st.booleans())
def test_a_table_fits_and_keeps_its_words(rows: list[tuple[str, str, str]], headed: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "columns", lambda _: 40)
        made = table(rows, ("a head", "b", "c") if headed else ())
    words = sorted(word for row in rows for cell in row for word in cell.split())
    assert sorted(made.split())[: len(words)] == words or set(words) <= set(made.split())
    if headed:
        assert all(len(line) <= 40 for line in made.split("\n"))


def test_output_that_is_not_on_a_terminal_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert table([("name", "word " * 40)], stream=io.StringIO()) == "name  " + ("word " * 40).rstrip()


@pytest.mark.parametrize("given", ["40", "0", ""])
def test_a_terminal_has_the_width_of_columns_and_a_file_has_none(
    given: str, terminal: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", given)
    with open(terminal[1], "w", closefd=False) as screen, (tmp_path / "file").open("w") as file:
        assert columns(screen) == (40 if given == "40" else WIDTH)
        assert columns(file) is None


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("verb", [(), *((verb,) for verb in COMMANDS), ("dataset", "info"), ("train", "--help-all")])
def test_help_fits(verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb, "--help"]) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if len(line) > WIDTH] == []
    assert [line for line in said.splitlines() if line.endswith("-")] == []


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "mixed-g6e-g6-g5", "--offline"),
        ("catalog",),
        ("catalog", "--gpu"),
        ("predict", "--model", "no"),
    ],
)
def test_tables_and_sentences_fit(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    said = capsys.readouterr()
    assert too_long(said.out + said.err) == []


@pytest.mark.usefixtures("narrow")
def test_a_dataset_and_how_it_is_made_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f'{{"reviewText": "a fine lamp number {"x" * n}", "overall": {1 + n % 5}}}\n' for n in range(50)]
    (tmp_path / "reviews.json").write_text("".join(lines) + '{"reviewText": 5}\n')
    given = ["preprocess", "--local", "--input", str(tmp_path / "reviews.json"), "--output", str(tmp_path / "out")]
    for arguments in ([*given, "--dry-run"], given, ["dataset", "info", str(tmp_path / "out" / "dataset.h5")]):
        assert main(arguments) == 0
        assert too_long(capsys.readouterr().out) == []


@pytest.mark.usefixtures("narrow")
def test_a_training_s_summary_fits(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node("fast", 1), node("small", 1, "spot")]
    confusion = {"classes": [f"class number {number}" for number in range(5)], "counts": [[1_234_567] * 5] * 5}
    result = trained([QUICK, {**SLOW, "slowed": 100.0}], nodes=nodes, cost=1.5, confusion=confusion)
    summary({}, train.rows(result, Path("results/model")), as_json=False)
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if len(line) > WIDTH] == []
    head = next(line for line in said.splitlines() if line.startswith("time of the steps"))
    assert "slowed  all-reduce  wait  rest" in head
    assert "predicted as" in said


@pytest.mark.usefixtures("narrow")
def test_the_result_of_destroy_fits() -> None:
    things = [
        FoundResource(
            kind="security group", identifier="sg-0123456789abcdef0", billed=False, outcome="gone", why="deleted"
        ),
        FoundResource(
            kind="s3 bucket",
            identifier="shoal-starter-databucket-0123456789abcdef0123456789abcdef01234567",
            billed=True,
            outcome="left",
            why="AWS does not let you delete it: access is denied by the bucket's policy, which somebody has changed",
        ),
    ]
    said = destroy._table(things)
    assert [line for line in said.splitlines() if len(line) > WIDTH] == []
    assert things[1].identifier in said.split()


@pytest.mark.usefixtures("narrow")
def test_the_state_of_a_deployment_fits(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "The following resource(s) failed to update: [ClusterOfTheDeployment]. " * 2
    now = Status(
        name="mixed-g6e-g6-g5",
        stack={
            "StackName": "Shoal-mixed-g6e-g6-g5",
            "StackStatus": "UPDATE_ROLLBACK_COMPLETE",
            "StackStatusReason": reason,
            "CreationTime": datetime.now(UTC),
            "Tags": [{"Key": "shoal:owner", "Value": "ada"}, {"Key": "shoal:topology", "Value": "mixed-g6e-g6-g5"}],
            "Outputs": [
                {"OutputKey": "DataBucket", "OutputValue": "shoal-mixed-g6e-g6-g5-databucket-0123456789abcdef"}
            ],
        },
        groups=[
            GroupStatus(
                name="g6e-xlarge",
                role="train",
                instance_type="g6e.xlarge",
                size=3,
                desired=3,
                running=2,
                ready=1,
                told={},
            ),
            GroupStatus(
                name="m5-xlarge", role="read", instance_type="m5.xlarge", size=2, desired=0, running=0, ready=0, told={}
            ),
        ],
        cluster=None,
        guard=None,
    )
    summary({}, status._rows(now, "us-east-1"), as_json=False)
    said = capsys.readouterr().out
    assert too_long(said) == []
    assert "nodes g6e-xlarge" in said
    assert "readers m5-xlarge" in said
    assert " ".join(reason.split()) in " ".join(said.split())


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal of 80 columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    yield ours, theirs
    os.close(ours)


BARS = """
from bootstrap.progress import Bars
with Bars(unit="row") as bars:
    bars.stage("train", 24_000_000)
    bars.pace(5300.0)
    figures = {"loss": "0.345", "balanced": "97%", "cost so far": "$1.23", "epoch": "3",
        "balanced accuracy": "88.1%", "split": "100+90+80+70"}
    bars.say(**figures)
    bars.at(4_000_000)
    bars.tick()
    bars.note("a node was lost, so " + "the work goes on without it " * 5)
    bars.leave()
"""


@pytest.mark.parametrize(
    ("environment", "escapes"), [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)]
)
@pytest.mark.parametrize("typed", ["plan --help", "plan no-such-topology"])
def test_escape_codes_are_for_terminals_that_take_them(
    typed: str, environment: dict[str, str], escapes: bool, terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = terminal
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    with open(theirs, "w", closefd=False) as screen, redirect_stdout(screen), redirect_stderr(screen):
        main(typed.split())
    assert (b"\x1b" in _more(ours)) == escapes


def test_a_bar_shows_as_many_figures_as_a_terminal_has_room_for(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run([sys.executable, "-c", BARS], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    said = b""
    while more := _more(ours):
        said += more
    lines = [line.removesuffix("\x1b[A") for line in said.decode().replace("\r", "\n").split("\n")]
    assert [line for line in lines if len(line) > WIDTH] == []
    bars = [line for line in lines if "loss=" in line]
    assert bars
    assert {line.rpartition("loss=")[2].rstrip() for line in bars} == {"0.345]"}
    assert all(re.search(r"\|[^|]{4,}\|", line) for line in bars)


def _more(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""
