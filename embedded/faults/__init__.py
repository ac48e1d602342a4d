"""What fails on purpose: the faults that can be asked for, and the services' words for what they refuse."""
