"""`--config`: reads a command's options from a YAML file."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from common.display import plural
from common.errors import UsageError
from infra.topology_error import TopologyError


def _read(ctx: click.Context, _param: click.Parameter, path: Path | None) -> None:
    """Set options from a --config file; the command line overrides them. Raises UsageError with the line number."""
    if path is None:
        return
    from shoal.config_file import read_config  # this import loads PyYAML

    parameters = [each for each in ctx.command.params if isinstance(each, click.Option) and each.expose_value]
    options = {name.removeprefix("--"): each for each in parameters for name in each.opts}
    found: dict[str, Any] = {}
    try:
        document, entries = read_config(path)
        for name, (words, switch) in entries.items():
            option = options.get(name)
            if option is None:
                nearest = difflib.get_close_matches(name.replace("_", "-"), options, n=1, cutoff=0.5)
                everything = f"`{ctx.command_path} --help-all` lists all options."
                hint = f"did you mean '{nearest[0]}'?" if nearest else everything
                raise document.fault((name,), f"'{name}' is not an option of {ctx.command_path}; {hint}", at_key=True)
            if option.name in found:
                sentence = f"{name} and another name of the same option are both given; remove one of them."
                raise document.fault((name,), sentence, at_key=True)
            try:
                value = _value(option, words, switch)
                option.type_cast_value(ctx, value)
            except click.BadParameter as error:
                raise document.fault((name,), f"{name}: {error.message}") from None
            found[str(option.name)] = value
    except TopologyError as error:
        raise UsageError(str(error)) from None
    ctx.default_map = {name: value for name, value in found.items() if value is not False}


def _value(option: click.Option, words: Sequence[str], switch: bool | None) -> Any:
    """Return the option's value as Click would parse it from a command line. Raises click.BadParameter."""
    if option.is_flag:
        if switch is None:
            raise click.BadParameter("this option has no value on the command line; write true or false.")
        return switch
    if option.multiple:
        return words
    if len(words) != option.nargs:
        raise click.BadParameter(f"this option requires {plural(option.nargs, 'value')}, not {len(words)}.")
    return words[0] if option.nargs == 1 else words


CONFIG = click.Option(
    ["--config"],
    type=click.Path(path_type=Path),
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="read options from a YAML file, where option names have no leading dashes; options on the command line take "
    "precedence",
)
