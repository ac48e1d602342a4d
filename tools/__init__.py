"""Programs for whoever maintains Shoal; they are not installed with it."""
