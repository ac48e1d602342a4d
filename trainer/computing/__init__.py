"""Computation on one rank: gradients of its rows, threads, precision, dropout, and the optimiser."""
