"""Errors of a sweep."""


class SweepError(Exception):
    """The sweep cannot list, recognise or delete a resource. The text is one sentence for the user."""


class OwnershipUnknownError(SweepError):
    """The owner of a resource is unknown. The text is the reason."""


class NameOnlyError(OwnershipUnknownError):
    """Only the name of a resource indicates its owner, for any credentials. The text says what to do."""
