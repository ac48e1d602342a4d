"""Experiments as files: the arms that they compare, the runs that follow, and their predicted time and cost."""
