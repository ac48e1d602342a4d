"""Runs the life cycle of a deployment on a real account, within a dollar limit, and reports on it."""
