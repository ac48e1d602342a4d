"""Internals of ministack that the emulator uses, one module for each service. Adapt these to a new version of
ministack.

If a patch point replaces an operation, its docstring must start with the operation's name, because `tools.fidelity`
reads it.
"""
