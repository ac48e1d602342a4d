"""Ranks of a run: their process group, the exchange at each step, and reports of failures."""
