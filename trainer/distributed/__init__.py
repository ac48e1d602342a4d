"""The ranks of a run: their process group, what they exchange at each step, and how a failure is reported."""
