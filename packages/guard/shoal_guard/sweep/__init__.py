"""Finds and deletes the resources of an owner (such as a stack or a tag) in each service's own list, and prices
them."""
