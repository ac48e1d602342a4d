"""The search for the best settings of a model of texts (`--model auto`): candidates, trials of them, and a choice."""
