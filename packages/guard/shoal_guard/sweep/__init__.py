"""Finds, prices and deletes the resources of a stack, a tag or another owner, by each service's own list."""
