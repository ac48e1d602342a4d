"""The code that runs on machines: the scripts of the first boot, and the agent of a node."""
