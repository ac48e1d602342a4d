"""Experiments as files: what is compared, the runs that follow from it, and what these would take and cost."""
