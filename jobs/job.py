"""The base classes of the jobs: records of bytes, the settings as an option, and a progress counter.

The counter is for progress bars only. Do not use it for results, because a retried task counts twice.
"""

import sys
from dataclasses import replace
from typing import Any

if sys.version_info >= (3, 12):
    import setuptools  # noqa: F401  # brings distutils, which mrjob needs

from mrjob.job import MRJob
from mrjob.protocol import BytesProtocol

from corpus.dataset_settings import Settings
from jobs.job_settings import settings_of

COUNTER = ("shoal", "bytes")

_REPORT_BYTES = 1 << 20


class PreprocessingJob(MRJob):
    """A MapReduce job of this package."""

    INPUT_PROTOCOL = BytesProtocol
    INTERNAL_PROTOCOL = BytesProtocol
    OUTPUT_PROTOCOL = BytesProtocol

    _unreported = 0

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--settings", metavar="JSON", help="the settings of the dataset")
        self.add_passthru_arg("--stopwords", metavar="FILE", help="where the user's file of stopwords is for this task")

    def _runner_class(self) -> Any:
        if self.options.runner != "local":
            return super()._runner_class()
        from jobs.local import LocalRunner  # here, because tasks import this module and do not run jobs

        return LocalRunner

    def settings(self) -> Settings:
        found = settings_of(self.options.settings)
        return found if self.options.stopwords is None else replace(found, stopwords=self.options.stopwords)

    def report_bytes(self, read: int, at_once: bool = False) -> None:
        """Report `read` more bytes of input as done, by a Hadoop counter on standard error."""
        self._unreported += read
        if self._unreported > _REPORT_BYTES or (at_once and self._unreported):
            self.increment_counter(*COUNTER, self._unreported)
            self._unreported = 0
