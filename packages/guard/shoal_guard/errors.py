"""Errors of a sweep."""


class SweepError(Exception):
    """The sweep cannot list, recognise or delete a resource. The message is one sentence for the user."""


class OwnershipUnknownError(SweepError):
    """The owner of a resource is unknown. The message is the reason."""
