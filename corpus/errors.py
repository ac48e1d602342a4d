"""The error of this package: data that cannot be used as it is."""


class DataError(Exception):
    """Input or a dataset that cannot be used; its text is one sentence for the user, with the file and a way out."""
