"""Runs experiments (experiments/plans): all runs of all arms in turns, on this machine or on deployments."""
