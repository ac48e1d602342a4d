"""The one exception of this package: a sentence for the user, raised where the cause is known."""


class EmulatorError(Exception):
    """What keeps the embedded AWS from starting or going on; its text names the resource and says what to do."""
