"""The exception of this package. Its text is a sentence for the user."""


class EmulatorError(Exception):
    """The embedded AWS cannot start or continue. The text names the resource and what to do."""
