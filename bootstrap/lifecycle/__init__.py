"""A deployment from the plan to the last bill: what it would be, its creation, its state, its guard, its results."""
