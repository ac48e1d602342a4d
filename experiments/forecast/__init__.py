"""What runs will take and cost, before a dollar is spent: rates, and the laws by which they add up."""
