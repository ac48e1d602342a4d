"""Checks that names, docstrings, comments, messages and documents use plain technical English.

`patterns.yaml` lists the phrases to avoid. In documents and docstrings, a sentence must not have more than `LONGEST`
words.
"""
