"""The commands that make datasets, train, predict and compare."""
