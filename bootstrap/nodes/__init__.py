"""Node groups of a deployment: lists of running nodes, scaling up and to zero, and reports of first boots."""
