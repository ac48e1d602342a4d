"""Output of a run: its record, its checkpoints, its speed, and the files in its folder."""
