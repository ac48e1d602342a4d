"""EMR: clusters with their bootstrap actions and steps, and the operations of the API."""
