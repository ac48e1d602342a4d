"""Hosts of one's own, reached by SSH: which they are, commands and files there, and the folder that they share."""
