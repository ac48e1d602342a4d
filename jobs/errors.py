"""The errors of this package."""

from corpus.errors import DataError


class JobError(Exception):
    """A job failed for another reason than its input. Its message is one sentence for the user."""


class FinalError(DataError):
    """An error that the same command will raise again, so the finished steps before it are useless."""
