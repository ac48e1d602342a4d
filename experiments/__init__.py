"""Predictions of time and cost, experiments that compare runs, and reports on runs."""
