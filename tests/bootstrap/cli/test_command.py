"""How the command line is read: several values, options that argparse declares, completion in a real shell."""

import shutil
import subprocess
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.cli import command as declaring
from bootstrap.cli.command import argparse_options, command, option

VALUES = st.text("ab.*/", min_size=1, max_size=4) | st.integers(-9, 9).map(str)


def parsed(arguments: list[str]) -> dict[str, Any] | str:
    """What a command of a flag, an option of one value and one of several reads; or what it finds wrong."""
    found: dict[str, Any] = {}

    @command(name="it")
    @option("--several", several=True)
    @option("--one")
    @option("--flag", is_flag=True)
    @click.argument("rest", nargs=-1)
    def it(**values: Any) -> None:
        found.update(values)

    done = CliRunner().invoke(it, arguments)
    return found if done.exit_code == 0 else done.output


@given(st.lists(st.lists(VALUES, min_size=1, max_size=3), max_size=3), st.booleans(), st.lists(VALUES, max_size=2))
def test_several_values_end_at_the_next_option(groups: list[list[str]], flag: bool, rest: list[str]) -> None:
    line = [word for group in groups for word in ("--several", *group)] + ["--flag"] * flag
    found = parsed([*line, "--", *rest])
    assert found == {
        "several": tuple(value for group in groups for value in group),
        "one": None,
        "flag": flag,
        "rest": tuple(rest),
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--one", "--flag"], "'--one' requires a value, but --flag follows"),
        (["--several", "--flag"], "'--several' requires a value, but --flag follows"),
        (["--several", "--", "a"], "'--several' requires a value, but -- follows"),
        (["--several"], "Option '--several' requires an argument"),
        (["--severa", "a"], "No such option '--severa'. Did you mean '--several'?"),
    ],
)
def test_an_error_names_the_option(arguments: list[str], sentence: str) -> None:
    found = parsed(arguments)
    assert isinstance(found, str)
    assert sentence in found


def test_a_value_may_look_like_an_option_after_an_equals_sign() -> None:
    found = parsed(["--one=--flag", "--several=a", "--flag"])
    assert isinstance(found, dict)
    assert (found["one"], found["several"], found["flag"]) == ("--flag", ("a",), True)


def even(text: str) -> int:
    if int(text) % 2:
        raise ArgumentTypeError(f"{text} is not even")
    return int(text)


def declare(parser: Any) -> None:
    group = parser.add_argument_group("numbers")
    group.add_argument("--even", type=even, default=4, metavar="N", help="an even number (%(default)s)")
    group.add_argument("--pair", type=float, nargs=2, default=[1, 5], metavar=("LOW", "HIGH"), help="two")
    parser.add_argument("--bits", type=int, choices=(32, 16), default=SUPPRESS, help="bits")
    parser.add_argument("--folder", type=Path, default=SUPPRESS, help="a folder")
    parser.add_argument("--words", "--w", nargs="+", action="extend", default=SUPPRESS, metavar="W", help="words")
    parser.add_argument("--on", action="store_true", help="a switch")


LINES = (
    [],
    ["--even", "6", "--on"],
    ["--pair", "2", "3.5", "--bits", "16"],
    ["--words", "a", "b", "--folder", "x/y", "--w", "c"],
)


@pytest.mark.parametrize("line", LINES)
def test_options_of_argparse_are_read_as_argparse_reads_them(line: list[str]) -> None:
    found: dict[str, Any] = {}

    @command()
    @argparse_options(declare)
    @click.pass_context
    def it(ctx: click.Context, /, **values: Any) -> None:
        said = declaring.typed_options(ctx)
        found.update({name: value for name, value in values.items() if name in said or value is not None})

    assert CliRunner().invoke(it, line).exit_code == 0
    parser = ArgumentParser()
    declare(parser)
    expected = vars(parser.parse_args(line))
    assert {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if value != ()
    } == {name: list(value) if isinstance(value, tuple) else value for name, value in expected.items()}


def test_a_value_that_argparse_would_refuse_is_refused_in_the_same_words() -> None:
    @command()
    @argparse_options(declare)
    def it(**_values: Any) -> None:
        pass

    done = CliRunner().invoke(it, ["--even", "5"])
    assert done.exit_code == 2
    assert "Invalid value for '--even': 5 is not even" in done.output
    said = CliRunner().invoke(it, ["--help"]).output
    assert said.index("Numbers:") < said.index("an even number (4)") < said.index("Options:") < said.index("--on")


COMPLETE = """
eval "$(shoal completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shoal_completion shoal
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["shoal", "pre"], ["preprocess", "predict"]),
        (["shoal", "train", "--learn"], ["--learning-rate"]),
        (["shoal", "plan", "starte"], ["starter"]),
        (["shoal", "train", "--output", "--resu"], ["--resume"]),
        (["shoal", "train", "--schedule", "co"], ["cosine", "constant"]),
    ],
)
def test_bash_completes_commands_options_and_values(words: list[str], offered: list[str]) -> None:
    done = subprocess.run(["bash", "-c", COMPLETE, "bash", *words], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_each_shell_reads_its_completion_lines(shell: str) -> None:
    script = subprocess.run(["shoal", "completion", shell], capture_output=True, text=True, check=True).stdout
    assert f"_SHOAL_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
