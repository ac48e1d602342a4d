"""Errors of the rooms name options of the command line; those that a program gets name arguments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import DataError, JobError, ShoalError, TrainingError

_OPTION = re.compile("`[^`]*`|--([a-z]+(?:-[a-z]+)*)")
"""An option outside a command in backticks."""


@contextmanager
def errors_name_arguments(**arguments: str) -> Iterator[None]:
    """Name arguments in the sentences of errors: the option's name with underscores, or what `arguments` has for it."""
    try:
        yield
    except (DataError, JobError, ShoalError, TrainingError) as error:
        error.args = (_OPTION.sub(lambda found: _argument(found, arguments), str(error)),)
        raise


def _argument(found: re.Match[str], arguments: dict[str, str]) -> str:
    name = (found[1] or "").replace("-", "_")
    return arguments.get(name, name) or found[0]
