"""What is provisioned: the topologies that a user picks from, their prices, and the one stack that each becomes."""
