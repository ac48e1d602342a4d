"""Internals of ministack that the emulator uses, one module for each service. Adapt these to a new version of
ministack."""
