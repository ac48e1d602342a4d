"""The whole life of a deployment on this machine, with reviews of our own making."""
