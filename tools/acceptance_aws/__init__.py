"""Runs the life cycle of a deployment on a real AWS account, within a dollar limit, and writes a report."""
