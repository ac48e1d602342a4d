"""Parsing of command lines: several values, described options, and --config files."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import ShoalError
from common.options import Option, argparse_argument
from shoal.cli.command import command, described_options, given_words, option
from shoal.cli.commands import shoal
from shoal.cli.verbs.train import run as train
from shoal.config_file import write_config

VALUES = st.text("ab.*/", min_size=1, max_size=4) | st.integers(-9, 9).map(str)

WRONG: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("wrong_config.yaml").read_text())


@command(name="plain")
@option("--several", multiple=True)
@option("--one")
@option("--flag", is_flag=True)
@click.argument("rest", nargs=-1)
def plain(**values: Any) -> dict[str, Any]:
    return values


def parsed(*line: str) -> Any:
    """Return the values that the command `plain` parses. Raises its errors."""
    return plain.main(list(line), "plain", standalone_mode=False)


@given(st.lists(st.lists(VALUES, min_size=1, max_size=3), max_size=3), st.booleans(), st.lists(VALUES, max_size=2))
def test_several_values_end_at_the_next_option(groups, flag, rest) -> None:
    line = [word for group in groups for word in ("--several", *group)] + ["--flag"] * flag
    several = tuple(value for group in groups for value in group)
    assert parsed(*line, "--", *rest) == {"several": several, "one": None, "flag": flag, "rest": tuple(rest)}


@pytest.mark.parametrize("line", ["--one --flag", "--several --flag", "--several -- a", "--several", "--severa a"])
def test_a_parse_error_names_the_option(line, messages) -> None:
    with pytest.raises(click.UsageError) as refusal:
        parsed(*line.split())
    messages.check(refusal.value.format_message())


@pytest.mark.parametrize(
    "line",
    [
        *(f"train --local {flag} " for flag in ("--data", "--output", "--input", "--config", "--embeddings")),
        *("preprocess --output ", "preprocess --stopwords ", "embed --similarity ", "embed --analogy "),
        *("predict --model ", "predict --model m ", "report "),
    ],
)
def test_an_empty_path_is_refused(line, messages) -> None:
    with pytest.raises(click.UsageError) as refusal:
        shoal.main(line.split(" "), standalone_mode=False)
    messages.check(refusal.value.format_message())


def test_a_value_may_look_like_an_option_after_an_equals_sign() -> None:
    values = parsed("--one=--flag", "--several=a", "--flag")
    assert (values["one"], values["several"], values["flag"]) == ("--flag", ("a",), True)


def even(text: str) -> int:
    if int(text) % 2:
        raise ArgumentTypeError(f"{text} is not even")
    return int(text)


DESCRIBED = (
    Option(name="even", kind=even, default=4, metavar="N", text="an even number", group="numbers", aliases=("--e",)),
    Option(name="pair", kind=float, values=2, default=(1, 5), metavar="LOW HIGH", text="100% two", group="numbers"),
    Option(name="bits", kind=int, choices=(32, 16), text="bits"),
    Option(name="share", kind=float, text="a number", advanced=True),
    Option(name="folder", kind=Path, text="a folder"),
    Option(name="a_text", text="a text", advanced=True),
    Option(name="words", several=True, metavar="W", text="words", aliases=("--w",)),
    Option(name="switch", kind=bool, default=False, text="a switch"),
)


@command()
@described_options(DESCRIBED)
def it(**values: Any) -> dict[str, Any]:
    return values


def values_of(*line: str) -> Any:
    """Return the values that the command `it` parses. Raises its errors."""
    return it.main(list(line), "it", standalone_mode=False)


def error_of(*line: str) -> str:
    """Return the error message for a wrong command line."""
    with pytest.raises((click.UsageError, ShoalError)) as caught:
        values_of(*line)
    return str(caught.value)


@pytest.mark.parametrize("line", ["", "--even 6 --switch", "--pair 2 3.5 --bits 16", "--words a b --folder x/y --w c"])
def test_click_and_argparse_parse_a_described_option_alike(line) -> None:
    parser = ArgumentParser()
    for each in DESCRIBED:
        parser.add_argument(*each.flags, **argparse_argument(each))
    typed = vars(parser.parse_args(line.split()))
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in typed.items()}
    assert values_of(*line.split()) == {**values, "words": values["words"] or ()}
    assert "100% two (default: 1 5)" in parser.format_help()


def test_help_leaves_out_advanced_options_and_names_help_all(capsys) -> None:
    values_of("--help")
    usual = capsys.readouterr().out
    assert usual.index("Numbers:") < usual.index("an even number (default: 4)") < usual.index("Options:")
    assert "--share" not in usual
    assert usual.splitlines()[-1] == "--help-all shows 2 more options."
    values_of("--help-all")
    every = capsys.readouterr().out
    assert all(flag in every for each in DESCRIBED for flag in each.flags)
    assert "more options" not in every


def test_help_of_train_has_few_options() -> None:
    usual = {each.opts[0] for each in train.params if not getattr(each, "advanced", False)}
    assert usual > {"--input", "--deployment", "--nodes", "--model", "--epochs", "--global-batch", "--learning-rate"}
    assert usual > {"--output", "--resume", "--config", "--help-all"}
    assert len(usual) <= 25


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "--even": st.integers(-99, 99).map(lambda number: (str(2 * number),)),
        "--pair": st.tuples(*[st.floats(-1e9, 1e9).map(str)] * 2),
        "--bits": st.sampled_from([("16",), ("32",)]),
        "--share": st.floats(-1e9, 1e9).map(lambda number: (repr(number),)),
        "--folder": TEXTS.filter(bool).map(lambda text: (text,)),
        "--a-text": (TEXTS | st.sampled_from(["off", "null", "~", "8e-3", "1_0", "<<", "2026-01-01", "- a", "#"])).map(
            lambda text: (text,)
        ),
        "--words": st.lists(TEXTS, min_size=1, max_size=3),
        "--switch": st.just(()),
    },
)


@settings(max_examples=50)
@given(GIVEN)
def test_a_config_file_restores_the_same_values(typed_words) -> None:
    line = [
        word
        for flag, words in typed_words.items()
        for word in ((flag, *words) if flag in ("--pair", "--switch") else [f"{flag}={each}" for each in words])
    ]
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.yaml")
        with it.make_context("it", list(line)) as typed:
            write_config(path, "it", given_words(typed))
        assert values_of("--config", str(path)) == values_of(*line)
        with it.make_context("it", ["--config", str(path)]) as read:
            assert given_words(read) == given_words(typed)


def test_the_command_line_overrides_the_file_and_the_file_the_default(tmp_path) -> None:
    (tmp_path / "c.yaml").write_text("e: 6\nbits: 16\nwords: [a, off, 1.50]\na-text: no\nswitch: false\n")
    values = values_of("--bits", "32", "--config", str(tmp_path / "c.yaml"))
    assert values == {**values_of(), "even": 6, "bits": 32, "words": ("a", "off", "1.50"), "a_text": "no"}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_config_file_is_refused_with_its_line(case, tmp_path, messages) -> None:
    if WRONG[case] is not None:
        (tmp_path / "c.yaml").write_text(WRONG[case])
    messages.check(error_of("--config", str(tmp_path / "c.yaml")))


def test_a_users_file_is_not_replaced(tmp_path, messages) -> None:
    (tmp_path / "mine.yaml").write_text("even: 6  # as I like it")
    with messages.raises(ShoalError):
        write_config(tmp_path / "mine.yaml", "it", {"even": ("4",)})
    assert (tmp_path / "mine.yaml").read_text() == "even: 6  # as I like it"


WORDS = {"slow": "0:1.5"}


@pytest.mark.parametrize("name", ["train", "preprocess", "predict"])
def test_a_config_file_accepts_every_option(name, tmp_path) -> None:
    command = shoal.resolve_command(click.Context(shoal), [name])[1]
    assert command is not None
    wanted = {}
    for each in command.params:
        if isinstance(each, click.Option) and each.expose_value:
            key = each.opts[0].removeprefix("--")
            word = str(each.type.choices[0]) if isinstance(each.type, click.Choice) else WORDS.get(key, "1")
            wanted[key] = () if each.is_flag else (word,) * each.nargs
    write_config(tmp_path / "all.yaml", name, wanted)
    with command.make_context(name, ["--config", str(tmp_path / "all.yaml")]) as ctx:
        assert given_words(ctx) == wanted
