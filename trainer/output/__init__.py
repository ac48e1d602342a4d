"""Output of a run: the record, the checkpoints, the measured speed, and the files in the output folder."""
