"""Commands on a deployment from its plan to its bill: price, creation, status, guard, logs and results."""
