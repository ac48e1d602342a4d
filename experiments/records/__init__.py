"""Records of runs: read, compared, and explained by cause."""
