"""Executes the runs of experiments (experiments/plans), alternating between arms, on this machine or on deployments."""
