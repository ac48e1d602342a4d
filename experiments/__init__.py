"""What runs take, what they took, and what that bought: predictions, the reference's tables, reports."""
