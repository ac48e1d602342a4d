"""The GPU nodes of a deployment: which run, scaling them up and to zero, and running commands on them."""
