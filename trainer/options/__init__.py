"""Options of a training run: the sections of options, and the rules for a section."""
