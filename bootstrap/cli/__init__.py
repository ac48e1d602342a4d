"""The command `shoal`. Each command has a file, whose `run` declares its options and returns its exit status."""
