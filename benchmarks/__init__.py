"""Compares Shoal with its peers: in one run, as ratios. The records are under results/."""

import sys
from pathlib import Path

# `make gpu` runs where nothing is installed.
sys.path += map(str, Path(__file__).parents[1].glob("packages/*"))
