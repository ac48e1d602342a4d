"""Experiment files: the arms that an experiment compares, its runs, and the predicted time and cost of the runs."""
