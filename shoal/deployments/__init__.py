"""A deployment, from its plan to its bill: prices, creation, status, guard, logs, and removal."""
