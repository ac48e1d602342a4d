"""The error of this package: something that was asked for and could not be done."""


class ShoalError(Exception):
    """A launch, a watch or a teardown that failed; its text is one sentence for the user."""


class UsageError(ShoalError):
    """Arguments that do not fit together: wrong use, so exit status 2."""
