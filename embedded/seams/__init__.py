"""The internals of ministack that the emulator uses, one module a service. Adapt this folder to a new ministack."""
