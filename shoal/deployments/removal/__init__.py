"""Removal of a deployment: find all resources that belong to it, delete them, and prove that none is left."""
