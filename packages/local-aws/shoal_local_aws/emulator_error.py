"""Exception of this package."""


class EmulatorError(Exception):
    """The embedded AWS cannot start or continue. The text names the resource and says what to do."""
