"""Hadoop Streaming, Spark and YARN as EMR runs them: splits, tasks, attempts and output."""
