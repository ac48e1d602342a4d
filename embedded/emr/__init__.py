"""EMR: the clusters, their boots and steps, and what its API says of them."""
