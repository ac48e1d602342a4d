"""The errors of this package: a job that could not be run to its end, and one that never will be."""

from corpus.errors import DataError


class JobError(Exception):
    """A job failed for another reason than its input; its text is one sentence for the user."""


class FinalError(DataError):
    """An error that the same command will meet again: what was finished before it is of no use."""
