"""The base classes of the jobs: records of bytes, the settings as options, and a progress counter.

The counter is for progress bars only. Do not use it for results, because a retried task counts twice.
"""

import sys
from typing import Any

if sys.version_info >= (3, 12):
    import setuptools  # noqa: F401  # brings distutils, which mrjob needs

from mrjob.job import MRJob
from mrjob.protocol import BytesProtocol

from common.options import argparse_argument
from corpus.dataset_settings import Settings
from jobs.job_settings import INPUT_SETTINGS, SETTINGS, read_job_settings

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
        for each in (*SETTINGS, *INPUT_SETTINGS):
            self.add_passthru_arg(*each.flags, **argparse_argument(each))

    def _runner_class(self) -> Any:
        if self.options.runner != "local":
            return super()._runner_class()
        from jobs.local import LocalRunner  # here, because tasks import this module and do not run jobs

        return LocalRunner

    def settings(self) -> Settings:
        return read_job_settings(self.options)

    def report_bytes(self, read: int, at_once: bool = False) -> None:
        """Report `read` more bytes of input as done, by a Hadoop counter on standard error."""
        self._unreported += read
        if self._unreported > _REPORT_BYTES or (at_once and self._unreported):
            self.increment_counter(*COUNTER, self._unreported)
            self._unreported = 0
