"""Node groups of a deployment: running nodes, scaling up and to zero, and first-boot reports."""
