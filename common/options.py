"""Describes command-line options as data, from which argparse and Click options are created.

The jobs and the trainer use argparse, because they run where Click is not installed. The `shoal` command declares the
same options with Click (shoal/cli/command.py).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """Description of a command-line option: its name, its help text, and the parsing of its value."""

    name: str
    """The option's Python identifier, such as `learning_rate`."""
    text: str
    """The help text."""
    _: KW_ONLY
    kind: Callable[[str], Any] = str
    """Function that converts the value from a string, or raises argparse.ArgumentTypeError.

    `bool` declares a flag without a value.
    """
    group: str = ""
    """Heading under which the help lists this option."""
    default: Any = None
    required: bool = False
    choices: tuple[Any, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other flags with the same meaning."""
    metavar: str | None = None
    values: int = 1
    """Number of values that the option takes."""
    several: bool = False
    """Whether the option takes one or more values and can be repeated."""
    advanced: bool = False
    """Whether the option is shown by `--help-all` only, not by `--help`."""
    internal: bool = False
    """Whether no command of `shoal` has the option. A model or a preset sets it, or `python -m trainer`."""

    @property
    def flags(self) -> tuple[str, ...]:
        return (flag(self.name), *self.aliases)

    @property
    def help(self) -> str:
        """The help text, followed by the default if there is one."""
        if self.required or self.several or self.default is None or self.default is False:
            return self.text
        shown = self.default if self.values == 1 else " ".join(map(str, self.default))
        return f"{self.text} (default: {shown})"


def flag(name: str) -> str:
    """Return the command-line flag of an option."""
    return "--" + name.replace("_", "-")


def argparse_argument(of: Option) -> dict[str, Any]:
    """Return the keyword arguments of argparse's `add_argument` for an option."""
    how: dict[str, Any] = {"required": of.required, "default": of.default, "help": of.help.replace("%", "%%")}
    if of.kind is bool:
        return {**how, "action": "store_true", "default": False}
    if of.several:
        how |= {"nargs": "+", "action": "extend"}
    elif of.values > 1:
        how["nargs"] = of.values
    if of.choices:
        how["choices"] = of.choices
    if of.metavar:
        how["metavar"] = of.metavar if of.values == 1 else tuple(of.metavar.split())
    return {**how, "type": of.kind}
