"""Base class of the jobs, and functions that run tasks and single-process steps.

The base class reads and writes records of bytes, adds an option for the settings, and counts progress. Bad data ends a
task with a one-sentence message instead of a traceback. Use the counter only for progress bars, not for results,
because a retried task counts twice.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

if sys.version_info >= (3, 12):
    import setuptools  # noqa: F401  # brings distutils, which mrjob needs

from mrjob.job import MRJob
from mrjob.protocol import BytesProtocol

from common.errors import DataError, is_full_disk
from corpus.dataset_settings import Settings
from corpus.reading.storage import write_text
from jobs.job_settings import parse_settings

COUNTER = ("shoal", "bytes")
FAILURE_PREFIX = "shoal: "

_REPORT_BYTES = 1 << 20


class PreprocessingJob(MRJob):
    """Base class of the MapReduce jobs in this package."""

    INPUT_PROTOCOL = BytesProtocol
    INTERNAL_PROTOCOL = BytesProtocol
    OUTPUT_PROTOCOL = BytesProtocol

    local_runner: Any = None
    """mrjob runner class that runs tasks on this machine's cores. The code that runs the job sets it."""
    _unreported = 0

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--settings", metavar="JSON", help="settings of the dataset")
        self.add_passthru_arg(
            "--stopwords", metavar="FILE", help="path at which this task finds the user's file of stopwords"
        )

    def _runner_class(self) -> Any:
        return self.local_runner if self.options.runner == "local" else super()._runner_class()

    def settings(self) -> Settings:
        settings = parse_settings(self.options.settings)
        return settings if self.options.stopwords is None else replace(settings, stopwords=self.options.stopwords)

    def report_bytes(self, read: int, at_once: bool = False) -> None:
        """Report that `read` more bytes of input are done, through a Hadoop counter on standard error."""
        self._unreported += read
        if self._unreported > _REPORT_BYTES or (at_once and self._unreported):
            self.increment_counter(*COUNTER, self._unreported)
            self._unreported = 0


def run_as_script(job: Any) -> None:
    """Run a task of a job. For bad data or a full disk, print a one-sentence message instead of a traceback."""
    try:
        job.run()
    except DataError as error:
        sys.exit(f"{FAILURE_PREFIX}{error}")
    except OSError as error:
        if not is_full_disk(error):
            raise
        sys.exit(f"{FAILURE_PREFIX}no space left on the device of the jobs' intermediate files; free some space")


def run_as_command(run: Callable[[Sequence[str]], str]) -> None:
    """Call `run`, a single-process step, with the command-line arguments, and print the string that it returns.

    For bad data, write a one-sentence message to standard error and also to the address in `--failure`, because a
    cluster delivers a step's standard error minutes later.
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
