"""Hadoop Streaming and YARN as EMR runs them: splits, tasks, attempts and output."""
