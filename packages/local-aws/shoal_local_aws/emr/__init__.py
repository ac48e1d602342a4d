"""EMR: clusters with bootstrap actions and steps, and the operations of EMR's API."""
