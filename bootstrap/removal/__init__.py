"""Removal of a deployment: find everything that belongs to it, delete it, and prove that it no longer exists."""
