"""What the runs of an experiment found, arm by arm."""
