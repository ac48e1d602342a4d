"""The command `shoal`: a file a verb, each with `add` (its options) and `run` (its work, and its exit status)."""
