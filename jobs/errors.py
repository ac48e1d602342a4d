"""The error of this package: a job that could not be run to its end."""


class JobError(Exception):
    """A job failed for another reason than its input; its text is one sentence for the user."""
