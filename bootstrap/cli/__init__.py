"""The command `shoal`: a command is a row of commands.py, and a file whose `run` declares its options."""
