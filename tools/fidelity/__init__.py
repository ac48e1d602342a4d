"""Records how the emulator answers each AWS operation that Shoal calls."""
