"""The options of a training run: what an option is, the sections of options, and presets of their values."""
