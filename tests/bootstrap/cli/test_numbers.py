"""Huge numbers on the command line cause no overflow and no endless computation."""

from collections.abc import Iterator
from contextlib import suppress

import click
import pytest

from bootstrap.cli.command import Converted
from bootstrap.cli.commands import shoal

HUGE = ["9" * 28, f"-{'9' * 28}", "9" * 5000, f"1e{'9' * 9}"]
NO_NUMBERS = ["nan", "inf", "-inf"]


def options(command: click.Command, path: str = "shoal") -> Iterator[tuple[str, click.Option]]:
    """Yield every option of a command and its subcommands, with its command line."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.resolve_command(context, [name])[1]
            assert subcommand is not None
            yield from options(subcommand, f"{path} {name}")
    for each in command.params:
        if isinstance(each, click.Option):
            yield f"{path} {each.opts[-1]}", each


NUMBERS = {
    name: each
    for name, each in options(shoal)
    if isinstance(each.type, (click.IntRange, click.FloatRange)) or each.type in (click.INT, click.FLOAT)
}
CONVERTED = {name: each for name, each in options(shoal) if isinstance(each.type, Converted)}


def test_there_are_numeric_options() -> None:
    assert len(NUMBERS) > 40
    assert len(CONVERTED) > 2


@pytest.mark.parametrize("name", NUMBERS)
def test_numeric_options_have_bounds(name) -> None:
    for value in (*HUGE, *NO_NUMBERS):
        with pytest.raises(click.BadParameter) as caught:
            NUMBERS[name].type.convert(value, NUMBERS[name], None)
        assert any(word in caught.value.message for word in ("not in the range", "not a valid", "not a number"))


@pytest.mark.parametrize("name", CONVERTED)
def test_huge_numbers_in_converted_options_cause_no_traceback(name) -> None:
    for value in (*HUGE, *NO_NUMBERS, *(f"g5.xlarge:{each}" for each in HUGE)):
        with suppress(click.BadParameter):
            CONVERTED[name].type.convert(value, CONVERTED[name], None)
