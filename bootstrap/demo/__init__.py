"""The whole life of a deployment on this machine, with generated reviews."""
