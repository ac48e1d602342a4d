"""Runs a task or a step of one process, which ends with one sentence instead of a traceback when its data are bad."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any

from common.errors import DataError, is_full_disk
from corpus.reading.storage import write_text

FAILURE_PREFIX = "shoal: "


def run_as_script(job: Any) -> None:
    """Run a job's task; for bad data and a full disk it prints one sentence instead of a traceback."""
    try:
        job.run()
    except DataError as error:
        sys.exit(f"{FAILURE_PREFIX}{error}")
    except OSError as error:
        if not is_full_disk(error):
            raise
        sys.exit(f"{FAILURE_PREFIX}no space left on the device that holds the jobs' work; free some")


def run_as_command(run: Callable[[Sequence[str]], str]) -> None:
    """Run a step of one process by the command line's arguments, and print the text that it returns.

    For bad data it writes one sentence, to standard error and to the address of `--failure`, because a cluster delivers
    the standard error of a step minutes later.
    """
    parser = ArgumentParser(add_help=False)
    parser.add_argument("--failure")
    options, arguments = parser.parse_known_args()
    try:
        print(run(arguments))  # noqa: T201
    except DataError as error:
        if options.failure:
            write_text(options.failure, str(error))
        sys.exit(f"{FAILURE_PREFIX}{error}")
