"""Runs: the data that they learn from, their state, and their results."""
