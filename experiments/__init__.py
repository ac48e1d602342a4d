"""Predicts the time and cost of runs, compares runs in experiments, and reports on runs."""
