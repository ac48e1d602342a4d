"""The errors of this package."""


class JobError(Exception):
    """A job failed for another reason than its input. Its message is one sentence for the user."""
