"""Raw reviews to one encoded dataset: the same MapReduce scripts on one machine and on a cluster.

The jobs never know where they run: what differs between runners stays in `pipeline` and in the launcher.
"""
