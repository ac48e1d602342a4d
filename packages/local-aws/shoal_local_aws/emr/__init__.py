"""EMR: its clusters, their bootstrap actions and steps, and the operations of its API."""
