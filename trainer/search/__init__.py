"""Searches for the best settings of a text classifier (`--model auto`): candidates, trials, and selection."""
