"""Reads the records of runs, and compares the runs."""
