"""What runs take, what they took, and what that bought: predictions, experiments, reports."""
