"""The errors that this package raises for users."""


class ShoalError(Exception):
    """Something failed; the text is one sentence for the user."""


class UsageError(ShoalError):
    """The arguments do not fit together; the exit status is 2."""


class OutputError(ShoalError):
    """Standard output cannot be written, or nobody reads it any more, which needs no sentence."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror or error}")
        self.is_unread = isinstance(error, BrokenPipeError)
