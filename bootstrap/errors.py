"""The errors that this package raises for users."""


class ShoalError(Exception):
    """Something failed; the text is one sentence for the user."""


class UsageError(ShoalError):
    """The arguments do not fit together; the exit status is 2."""
