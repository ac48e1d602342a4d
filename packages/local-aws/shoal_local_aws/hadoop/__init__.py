"""Hadoop Streaming and YARN as EMR runs them: tasks, attempts and output."""
