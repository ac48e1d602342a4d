"""Translates error messages: internal errors name command-line options, the Python API's errors name arguments."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import DataError, JobError, ShoalError, TrainingError

_OPTION = re.compile("`[^`]*`|--([a-z]+(?:-[a-z]+)*)")
"""Option of a command line, unless it is part of a command in backticks."""


@contextmanager
def errors_name_arguments(**arguments: str) -> Iterator[None]:
    """Replace options in error messages by argument names: by underscores for dashes, or as `arguments` maps them."""
    try:
        yield
    except (DataError, JobError, ShoalError, TrainingError) as error:
        error.args = (_OPTION.sub(lambda found: _argument(found, arguments), str(error)),)
        raise


def _argument(found: re.Match[str], arguments: dict[str, str]) -> str:
    name = (found[1] or "").replace("-", "_")
    return arguments.get(name, name) or found[0]
