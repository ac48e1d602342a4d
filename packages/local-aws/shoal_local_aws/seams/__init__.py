"""Internals of ministack that the emulator uses, one module for each service. Adapt them to a new ministack.

If a patch point replaces an operation, its docstring must start with the operation's name: `tools.fidelity` reads it.
"""
