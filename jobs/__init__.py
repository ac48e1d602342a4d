"""Makes one encoded dataset of raw reviews, by the same MapReduce scripts on one machine and on a cluster.

The jobs do not depend on where they run: `pipeline` and the launcher have what differs between runners.
"""
