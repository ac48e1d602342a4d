"""Translates error messages for the Python API: options of the command line become arguments of functions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import DataError, ShoalError, TrainingError

_OPTION = re.compile("`[^`]*`|--([a-z]+(?:-[a-z]+)*)")
"""Matches an option of the command line. A command in backticks matches as a whole, so that its options are kept."""


@contextmanager
def errors_name_arguments(**arguments: str) -> Iterator[None]:
    """Replace options in the block's error messages by argument names.

    An argument's name is the option's name with underscores, unless `arguments` maps it to a different name.
    """
    try:
        yield
    except (DataError, ShoalError, TrainingError) as error:
        error.args = (_OPTION.sub(lambda match: _argument(match, arguments), str(error)),)
        raise


def _argument(match: re.Match[str], arguments: dict[str, str]) -> str:
    name = (match[1] or "").replace("-", "_")
    return arguments.get(name, name) or match[0]
