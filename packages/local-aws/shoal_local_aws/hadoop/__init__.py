"""Hadoop Streaming as EMR runs it: a job's splits, its tasks and their attempts, its output."""
