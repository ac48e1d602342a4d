"""Vectors of words: how good they are, and in which files they are kept."""
