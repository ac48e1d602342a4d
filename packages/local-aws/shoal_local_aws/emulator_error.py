"""`EmulatorError`, the exception that this package raises for users."""


class EmulatorError(Exception):
    """The emulator cannot start or continue. The message names the resource and says what to do."""
