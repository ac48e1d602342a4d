"""What runs on every node: an agent that reconciles what is wanted with what is, by documents in the data bucket."""
