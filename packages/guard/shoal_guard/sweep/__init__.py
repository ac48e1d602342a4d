"""What a stack, a tag or another owner has in an account: found by every service's own list, priced, and deleted."""
