"""A deployment's nodes that train or read: which run, scaling them up and to zero, and running commands on them."""
