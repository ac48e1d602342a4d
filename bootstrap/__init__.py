"""Launches, monitors and removes deployments and runs; contains the command line `shoal`."""
