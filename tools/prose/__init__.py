"""Checks that names, docstrings, comments, messages and documents use plain technical English.

`patterns.yaml` lists the phrases to avoid. A document or docstring has no sentence of more than `LONGEST` words.
"""
