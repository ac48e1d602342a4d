"""The error of this room."""


class ExperimentError(Exception):
    """An input that cannot be used; the message is a sentence for the user, which names it and says what to do."""
