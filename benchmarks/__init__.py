"""What measures Shoal against its peers: in one run, as ratios, with the record kept under results/."""
