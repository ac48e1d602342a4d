"""Computation within one rank: gradients, CPU threads, precision, dropout, and the optimiser."""
