"""Failures on request: the kinds of faults, and the errors with which services then answer."""
