"""Benchmarks that compare Shoal with its peers in one run, as ratios. The records are under results/."""

import sys
from pathlib import Path

# `make gpu` runs without an installation.
sys.path += map(str, Path(__file__).parents[1].glob("packages/*"))
