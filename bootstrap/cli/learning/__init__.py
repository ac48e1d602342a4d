"""The commands that create datasets, train models, predict, and compare runs."""
