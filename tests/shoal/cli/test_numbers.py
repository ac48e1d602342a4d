"""Huge numbers on the command line cause no overflow and no endless computation."""

from contextlib import suppress
from importlib import import_module

import click
import pytest

from shoal.cli.command import Converted
from shoal.cli.commands import COMMANDS

HUGE = ["9" * 28, f"-{'9' * 28}", "9" * 5000, f"1e{'9' * 9}"]
NO_NUMBERS = ["nan", "inf", "-inf"]
CONTEXT = click.Context(click.Command("any"))


OPTIONS = {
    f"{name} {each.opts[-1]}": each
    for name, (module, _) in COMMANDS.items()
    for each in import_module(module).run.params
    if isinstance(each, click.Option)
}
NUMBERS = {name: each for name, each in OPTIONS.items() if isinstance(each.type, (type(click.INT), type(click.FLOAT)))}
CONVERTED = {name: each for name, each in OPTIONS.items() if isinstance(each.type, Converted)}


def test_there_are_numeric_options() -> None:
    assert len(NUMBERS) > 40
    assert len(CONVERTED) > 2


@pytest.mark.parametrize("name", NUMBERS)
def test_numeric_options_have_bounds(name) -> None:
    nargs = NUMBERS[name].nargs
    for value in (*HUGE, *NO_NUMBERS):
        with pytest.raises(click.BadParameter) as caught:
            NUMBERS[name].type_cast_value(CONTEXT, value if nargs == 1 else (value,) * nargs)
        assert any(word in caught.value.message for word in ("not in the range", "not a valid", "not a number"))


def test_a_size_may_be_terabytes() -> None:
    assert CONVERTED["plan --raw-bytes"].type_cast_value(CONTEXT, "5TB") == 5 * 10**12


@pytest.mark.parametrize("name", CONVERTED)
def test_huge_numbers_in_converted_options_cause_no_traceback(name) -> None:
    for value in (*HUGE, *NO_NUMBERS, *(f"g5.xlarge:{each}" for each in HUGE)):
        with suppress(click.BadParameter):
            CONVERTED[name].type.convert(value, CONVERTED[name], None)
