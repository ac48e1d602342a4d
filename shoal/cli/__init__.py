"""The command line `shoal`. Each command is an entry in commands.py and a module with a function `run`."""
