"""Exception of this package. The CDK app and the CLI print only its text, a sentence for the user."""


class TopologyError(ValueError):
    """Invalid topology, instance type or deployment name. The text names it and says what to do."""
