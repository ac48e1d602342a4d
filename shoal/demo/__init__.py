"""The demo: a deployment from start to end on this machine, with generated reviews."""
