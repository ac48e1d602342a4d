"""Exception of this package. The CDK app and the CLI print only its message, a sentence for the user."""


class TopologyError(ValueError):
    """A topology, an instance type or a deployment name is invalid. The message names it and says what to do."""
