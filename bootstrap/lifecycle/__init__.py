"""A deployment from the plan to the last bill: its price, creation, state, guard, logs and results."""
