"""Starts and follows training runs, on this machine or on a deployment's GPU nodes."""
