"""Starts and follows training runs on this machine, on hosts, and on deployments."""
