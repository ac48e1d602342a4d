"""Click commands and options, extended by grouped help and options with several values.

An option with `multiple` accepts values separated by spaces, up to the next option (`--input a b c`). The user can also
repeat the option (`--input a --input b`), which is all that Click itself supports. `described_options` declares the
options of jobs and trainer from their descriptions (common/options.py).

A command with `advanced` options shows them only in `--help-all`, and accepts `--config` (config_options.py).
"""

import argparse
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.types import FloatParamType

from common.options import Option as Description
from shoal.cli.config_options import CONFIG
from shoal.cli.output import JSON, Result, print_result

Callback = TypeVar("Callback", bound=Callable[..., Any])

MOST = 10**12
"""Upper bound of the absolute value of numeric options. Larger numbers would overflow, or computations never finish."""
MOST_RANKS = 1024
"""Maximum number of ranks on this machine, where each rank is a process."""
_OPTIONS = "Options"
_EVERY = "shoal.every"
"""Key in the `meta` of a Click context: true if the help shows advanced options."""
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
"""Sources of explicitly set values: the command line and the --config file."""
_WORDS = "shoal.words"
"""Key in the `meta` of a Click context: the original text of explicitly set options."""
_JSON_HELP = "print the summary as JSON on standard output"
_TYPE_NAMES = {click.IntRange: "integer", click.FloatRange: "number", FloatParamType: "number"}
"""Names of Click's types in the help and in messages, where Click would write `integer range` or `float`."""
_FLAG = re.compile(r"-[^\d.]")
"""Matches the start of an option. Negative numbers and a single `-` are values."""


class Option(click.Option):
    """Option that the help lists below the heading `group`. If `advanced` is true, only `--help-all` lists it."""

    def __init__(self, flags: Sequence[str], *, group: str = _OPTIONS, advanced: bool = False, **how: Any) -> None:
        super().__init__(flags, **how)
        self.group, self.advanced = group, advanced
        self.type.name = _TYPE_NAMES.get(type(self.type), self.type.name)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert a value, and record its original text for `given_words`."""
        if self.expose_value and ctx.get_parameter_source(str(self.name)) in _GIVEN:
            words = () if self.is_flag else (value,) if isinstance(value, str) else tuple(value)
            ctx.meta.setdefault(_WORDS, {})[self.opts[0].removeprefix("--")] = words
        return super().process_value(ctx, value)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert a value. Raises click.BadParameter, also for NaN and for numbers beyond MOST.

        The functions of `Converted` have bounds of their own, such as terabytes.
        """
        converted = super().type_cast_value(ctx, value)
        for each in converted if isinstance(converted, tuple) else (converted,):
            is_number = isinstance(each, int | float) and not isinstance(self.type, Converted)
            if is_number and not -MOST <= each <= MOST:
                raise click.BadParameter(f"{each} is not a number from {-MOST:,} to {MOST:,}.", ctx, self)
        return converted


class _Path(click.Path):
    """Path that is not empty. An empty path would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty; a shell variable in the command may be unset.", param, ctx)
        return super().convert(value, param, ctx)


class Converted(click.ParamType[Any]):
    """Click type that converts text by calling a function, as argparse's `type` does."""

    name = "text"

    def __init__(self, convert: Callable[[str], Any]) -> None:
        self._convert = convert

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._convert(value) if isinstance(value, str) else value  # a default needs no conversion
        except argparse.ArgumentTypeError as error:
            self.fail(str(error), param, ctx)


def _show_all(ctx: click.Context, _param: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        ctx.meta[_EVERY] = True
        click.echo(ctx.get_help())
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="show every option, and exit",
)


class Command(click.Command):
    """Command that lists its options by group in the help.

    The decorated function returns an exit status or a `Result`. A `Result` is printed as text or, with --json, as JSON.
    `notes` maps the heading of a group to the sentences below the heading. `json` is the help text of the option
    --json; if it is "", the command has no such option.
    """

    def __init__(self, *args: Any, notes: Mapping[str, str] | None = None, json: str = _JSON_HELP, **how: Any) -> None:
        super().__init__(*args, **how)
        self.notes = notes or {}
        if json:
            self.params.append(Option(["--json"], is_flag=True, help=json))
        self._advanced = sum(getattr(each, "advanced", False) for each in self.params)
        if self._advanced:
            self.params += [CONFIG, _HELP_ALL]
        for each in self.params:
            if isinstance(each.type, click.Path):
                each.type = _Path(dir_okay=each.type.dir_okay, path_type=each.type.type)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, print its result, and return the exit status."""
        ctx.meta[JSON] = ctx.params.pop("json", False)
        done = super().invoke(ctx)
        return print_result(done) if isinstance(done, Result) else done

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line. Raises click.UsageError, which names the option."""
        return super().parse_args(ctx, list(self._repeat_flags(args)))

    def _repeat_flags(self, args: Sequence[str]) -> Iterator[str]:
        """Yield the arguments in the form that Click accepts: `--input a b` becomes `--input a --input b`.

        Raises click.UsageError if another option stands in the place of a required value, because Click would use that
        option as the value.
        """
        flags = {flag: option for option in self.params if isinstance(option, click.Option) for flag in option.opts}
        rest = list(args)
        while rest:
            yield (word := rest.pop(0))
            option = flags.get(word)
            if word == "--":
                yield from rest
                return
            if option is None or option.is_flag or not rest:
                continue
            if rest[0] == "--" or rest[0] in flags:
                raise click.BadOptionUsage(word, f"Option '{word}' requires a value, but {rest[0]} follows.")
            if option.multiple:
                yield rest.pop(0)
                while rest and not _FLAG.match(rest[0]):
                    yield from (word, rest.pop(0))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options in the order of declaration; the group that contains `--help` comes last."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx) if isinstance(each, click.Option) else None
            if record is not None and (_EVERY in ctx.meta or not getattr(each, "advanced", False)):
                groups.setdefault(getattr(each, "group", _OPTIONS), []).append(record)
        for group in sorted(groups, key=lambda name: name == _OPTIONS):
            with formatter.section(group):
                if note := self.notes.get(group):
                    formatter.write_text(note)
                    formatter.write_paragraph()
                formatter.write_dl(groups[group])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog, and a pointer to `--help-all` if options were left out."""
        super().format_epilog(ctx, formatter)
        if self._advanced and _EVERY not in ctx.meta:
            formatter.write_paragraph()
            formatter.write_text(f"--help-all shows {self._advanced} more options.")


class Commands(click.Group):
    """Group that imports a command's module only when the command is used. The module's `run` is the command."""

    def __init__(self, *, rows: Mapping[str, tuple[str, str]], **how: Any) -> None:
        """`rows` maps the name of each command to its module and short help, in the order of the help page."""
        super().__init__(commands=[click.Command(name, short_help=short) for name, (_, short) in rows.items()], **how)
        self._rows = rows

    def list_commands(self, *_: object) -> list[str]:
        return list(self._rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command's name, the command, and its arguments. Raises click.NoSuchCommand with similar names."""
        name, matched, rest = super().resolve_command(ctx, args)
        return name, import_module(self._rows[name][0]).run if name else matched, rest


def command(**how: Any) -> Callable[[Callable[..., Any]], Command]:
    """Decorator that makes a function a `Command`."""
    return click.command(cls=Command, **how)


def option(*flags: str, **how: Any) -> Callable[[Callback], Callback]:
    """Decorator that declares an `Option` of a command."""
    return click.option(*flags, cls=Option, **how)


def described_options(
    options: Iterable[Description], *, group: str | None = None, but: Collection[str] = ()
) -> Callable[[Callback], Callback]:
    """Decorator that declares the described options of jobs or trainer, except the options named in `but`.

    `group`: one heading for all these options (default: the group in each description).
    """

    def decorated(function: Callback) -> Callback:
        for each in reversed([each for each in options if each.name not in but]):
            heading = group or each.group[:1].upper() + each.group[1:] or _OPTIONS
            option(each.name, *each.flags, group=heading, **_click_argument(each))(function)
        return function

    return decorated


def _click_argument(of: Description) -> dict[str, Any]:
    how: dict[str, Any] = {"help": of.help, "required": of.required, "advanced": of.advanced}
    if of.kind is bool:
        return {**how, "is_flag": True}
    if of.choices:
        how["type"] = click.Choice(of.choices)
    elif of.kind is Path or re.search("FILE|PATH", of.metavar or ""):
        how["type"] = click.Path(path_type=Path if of.kind is Path else None)  # a string can also be an S3 address
    else:
        types: dict[Any, click.ParamType[Any]] = {str: click.STRING, int: click.INT, float: FloatParamType()}
        how["type"] = types.get(of.kind) or Converted(of.kind)
    if of.several:
        return {**how, "multiple": True, "metavar": f"{of.metavar}..."}
    if of.default is not None:
        how["default"] = of.default
    return {**how, "nargs": of.values, "metavar": of.metavar}


def typed_options(ctx: click.Context) -> dict[str, Any]:
    """Return the values set on the command line or in the --config file, by parameter name. Defaults are left out."""
    return {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) in _GIVEN}


def given_words(ctx: click.Context) -> dict[str, tuple[str, ...]]:
    """Return the text of explicitly set options, by option name without dashes; an empty tuple for a flag."""
    return dict(ctx.meta.get(_WORDS, {}))
