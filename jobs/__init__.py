"""Encodes raw reviews as a dataset, with the same MapReduce scripts on one machine and on a cluster.

The jobs do not depend on where they run. `pipeline` and the launcher contain the differences between runners.
"""
