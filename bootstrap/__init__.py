"""Turns hardware into a running job: first boots, launches, watching, teardown, and the command `shoal`."""
