"""Click commands and options, extended by grouped help and options with several values.

An option with `several` accepts values separated by spaces, up to the next option (`--input a b c`). The user can also
repeat the option (`--input a --input b`), which is all that Click itself supports. `described_options` declares the
options of jobs and trainer from their descriptions (common/options.py).

A command with `advanced` options shows them only in `--help-all`, and accepts `--config` (config_options.py).
"""

import argparse
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from common.options import Option as Description
from shoal.cli.config_options import GIVEN, config_option, note_given
from shoal.cli.output import JSON, Result, print_result

Callback = TypeVar("Callback", bound=Callable[..., Any])


MOST = 10**12
"""Default upper bound of numeric options."""
MOST_RANKS = 1024
"""Maximum number of ranks on this machine, where each rank is a process."""
_OPTIONS = "Options"
_EVERY = "shoal.every"
"""Key in the `meta` of a Click context: true if the help shows advanced options."""
_JSON_HELP = "print the summary as JSON on standard output"


class Option(click.Option):
    """Option that accepts more than one value if `several` is true. If `advanced` is true, only `--help-all` lists it.

    The help lists the option below the heading `group`.
    """

    def __init__(
        self,
        flags: Sequence[str],
        *,
        group: str = _OPTIONS,
        several: bool = False,
        advanced: bool = False,
        **how: Any,
    ) -> None:
        super().__init__(flags, multiple=several, **how)
        self.group, self.several, self.advanced = group, several, advanced

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert a value, and record its original text for `given_words`."""
        note_given(ctx, self, value)
        return super().process_value(ctx, value)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the details that Click appends to a help text, without the default bound MOST."""
        extra = super().get_help_extra(ctx)
        ends = extra.pop("range", "x").removeprefix(f"{-MOST}<=").removesuffix(f"<={MOST}")
        return extra if ends == "x" else {**extra, "range": ends}


class _Whole(click.IntRange):
    name = "integer"


class _Finite(click.FloatRange):
    """Range of finite numbers; rejects NaN, which Click accepts."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


class _Path(click.Path):
    """Path that is not empty. An empty path would mean the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty; a shell variable in the command may be unset.", param, ctx)
        return super().convert(value, param, ctx)


def _checked_type(kind: click.ParamType[Any]) -> click.ParamType[Any]:
    """Return the type for a parameter: a path must not be empty. A number must be finite and, by default, at most MOST.

    Computations with larger numbers would overflow or never finish.
    """
    if isinstance(kind, click.Path):
        return _Path(dir_okay=kind.dir_okay, path_type=kind.type)
    if isinstance(kind, click.IntRange):
        return _Whole(kind.min, MOST if kind.max is None else kind.max, kind.min_open, kind.max_open)
    if isinstance(kind, click.FloatRange):
        return _Finite(kind.min, MOST if kind.max is None else kind.max, kind.min_open, kind.max_open)
    if kind is click.INT:
        return _Whole(-MOST, MOST)
    return _Finite(-MOST, MOST) if kind is click.FLOAT else kind


class Command(click.Command):
    """Command that lists its options by group in the help.

    The decorated function returns an exit status or a `Result`. A `Result` is printed as text or, with --json, as JSON.
    `notes` maps the heading of a group to the sentences below the heading. `json` is the help text of the option
    --json; if it is "", the command has no such option.
    """

    def __init__(
        self, *positional: Any, notes: Mapping[str, str] | None = None, json: str = _JSON_HELP, **how: Any
    ) -> None:
        super().__init__(*positional, **how)
        self.notes = notes or {}
        if json:
            self.params.append(Option(["--json"], is_flag=True, help=json))
        self._advanced = sum(getattr(each, "advanced", False) for each in self.params)
        if self._advanced:
            self.params += [config_option(), _help_all()]
        for each in self.params:
            each.type = _checked_type(each.type)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, print its result, and return the exit status."""
        ctx.meta[JSON] = ctx.params.pop("json", False)
        done = super().invoke(ctx)
        return print_result(done) if isinstance(done, Result) else done

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line. Raises click.UsageError, which names the option."""
        return super().parse_args(ctx, list(self._repeat_flags(args)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options in the order of declaration; the group that contains `--help` comes last."""
        groups: dict[str, list[tuple[str, str]]] = {_OPTIONS: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            is_shown = _EVERY in ctx.meta or not getattr(parameter, "advanced", False)
            if record is not None and isinstance(parameter, click.Option) and is_shown:
                groups.setdefault(getattr(parameter, "group", _OPTIONS), []).append(record)
        for group in [*(name for name in groups if name != _OPTIONS), _OPTIONS]:
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

    def _repeat_flags(self, args: Sequence[str]) -> Iterator[str]:
        """Yield the arguments in the form that Click accepts: `--input a b` becomes `--input a --input b`.

        Raises click.UsageError if another option stands in the place of a required value, because Click would use that
        option as the value.
        """
        flags = {flag: option for option in self.params if isinstance(option, click.Option) for flag in option.opts}
        rest = list(args)
        while rest:
            word = rest.pop(0)
            if word == "--":
                yield from (word, *rest)
                return
            option = flags.get(word)
            if option is None or option.is_flag:
                yield word
                continue
            if rest and (rest[0] == "--" or rest[0] in flags):
                raise click.BadOptionUsage(word, f"Option '{word}' requires a value, but {rest[0]} follows.")
            yield word
            if getattr(option, "several", False) and rest:
                yield rest.pop(0)
                while rest and not _is_flag(rest[0]):
                    yield from (word, rest.pop(0))


class Commands(click.Group):
    """Group that imports a command's module only when the command is used. The module's `run` is the command."""

    def __init__(self, *positional: Any, rows: Mapping[str, tuple[str, str]], **how: Any) -> None:
        """`rows` maps the name of each command to its module and short help, in the order of the help page."""
        super().__init__(*positional, **how)
        self.commands = {name: click.Command(name, short_help=short) for name, (_, short) in rows.items()}
        self._modules = {name: module for name, (module, _) in rows.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command's name, the command, and its arguments. Raises click.NoSuchCommand with similar names."""
        name, matched, rest = super().resolve_command(ctx, args)
        return name, import_module(self._modules[name]).run if name else matched, rest


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


def typed_options(ctx: click.Context) -> dict[str, Any]:
    """Return the values set on the command line or in the --config file, by parameter name. Defaults are left out."""
    return {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) in GIVEN}


class Converted(click.ParamType[Any]):
    """Click type that converts text by calling a function, as argparse's `type` does."""

    name = "text"

    def __init__(self, convert: Callable[[str], Any]) -> None:
        self._convert = convert

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # a default
            return value
        try:
            return self._convert(value)
        except argparse.ArgumentTypeError as error:
            self.fail(str(error), param, ctx)


def _click_argument(of: Description) -> dict[str, Any]:
    how: dict[str, Any] = {"help": of.help, "required": of.required, "advanced": of.advanced}
    if of.kind is bool:
        return {**how, "is_flag": True}
    if of.choices:
        how["type"] = click.Choice(of.choices)
    elif of.kind is Path:
        how["type"] = click.Path(path_type=Path)
    elif "FILE" in (of.metavar or "") or "PATH" in (of.metavar or ""):
        how["type"] = click.Path()  # or an address on S3, or a name
    else:
        how["type"] = of.kind if of.kind in (str, int, float) else Converted(of.kind)
    if of.several:
        return {**how, "several": True, "metavar": f"{of.metavar}..."}
    if of.default is not None:
        how["default"] = of.default
    return {**how, "nargs": of.values, "metavar": of.metavar}


def _help_all() -> click.Option:
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="show every option, and exit",
    )


def _show_all(ctx: click.Context, _param: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        ctx.meta[_EVERY] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _is_flag(word: str) -> bool:
    """Return whether a word of a command line is an option. Negative numbers and a single `-` are values."""
    if not word.startswith("-") or word == "-":
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False
