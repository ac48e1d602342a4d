"""The command `shoal`: a file a command, whose `run` is the command: its options, its work, and its exit status."""
