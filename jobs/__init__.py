"""Converts raw reviews to a dataset, with the same MapReduce scripts on one machine and on a cluster.

The jobs do not depend on where they run. Only `pipeline` (this machine) and the launchers of clusters know the
differences between runners.
"""
