"""What a run records and keeps: its output folder, the record and summary, checkpoints, and where time went."""
