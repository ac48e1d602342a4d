"""The GPU nodes of a deployment: which run, how they are scaled up and to zero, how a command is run on them."""
