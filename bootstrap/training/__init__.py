"""A dataset to a model, on this machine or on a deployment's GPU nodes, and what is seen of a run."""
