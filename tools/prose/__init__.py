"""Checks that names, docstrings, comments, messages and documents use plain technical English."""
