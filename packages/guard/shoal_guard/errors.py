"""The errors of a sweep."""


class SweepError(Exception):
    """Something cannot be listed, recognised or deleted; the text is one sentence for the user."""


class OwnershipUnknownError(SweepError):
    """The owner of a resource cannot be found out; the text is the reason."""


class NameOnlyError(OwnershipUnknownError):
    """Nothing certain tells the owner, whoever asks; the text says what to do."""
