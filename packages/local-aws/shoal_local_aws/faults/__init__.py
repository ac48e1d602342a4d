"""Fault injection: the kinds of faults, and the errors that services then return."""
