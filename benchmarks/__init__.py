"""Compares Shoal with its peers: in one run, as ratios. The records are under results/."""
