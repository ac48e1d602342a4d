"""Options of a command line as data, from which argparse and Click make their own.

Jobs and trainer run where there is no Click, and read options by argparse; `shoal` has the same ones by Click
(bootstrap/cli/command.py).
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option: what help shows of it, and how its value is read."""

    name: str
    """As Python spells it."""
    text: str
    """The help text."""
    _: KW_ONLY
    kind: Callable[[str], Any] = str
    """Converts a typed value, and raises argparse.ArgumentTypeError with a sentence; `bool`: there is no value."""
    group: str = ""
    """The heading of the help under which it stands."""
    default: Any = None
    required: bool = False
    choices: tuple[Any, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other flags with the same meaning."""
    metavar: str | None = None
    values: int = 1
    """How many it takes at once."""
    several: bool = False
    """Whether it takes any number of values, and may be repeated."""
    advanced: bool = False
    """Whether few people need it, so that `shoal COMMAND --help` leaves it out."""

    @property
    def flags(self) -> tuple[str, ...]:
        return (flag(self.name), *self.aliases)

    @property
    def help(self) -> str:
        """The help text, with the default if there is one to show."""
        if self.required or self.several or self.default is None or self.default is False:
            return self.text
        shown = self.default if self.values == 1 else " ".join(map(str, self.default))
        return f"{self.text} (default: {shown})"


def flag(name: str) -> str:
    """The command-line flag of an option."""
    return "--" + name.replace("_", "-")


def argparse_argument(of: Option) -> dict[str, Any]:
    """What argparse's `add_argument` is told of an option, besides its flags."""
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
