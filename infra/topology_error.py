"""The exception of this package. Its text is one sentence for the user; the CDK app and the CLI print nothing else."""


class TopologyError(ValueError):
    """A topology, instance type or deployment name that cannot be used. The text names it and says what to do."""
