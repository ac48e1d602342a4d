"""The internals of ministack that the emulator uses, a module for each service. Adapt them to a new ministack."""
