"""How one rank computes: gradients of its rows, its threads and precision, dropout, and the optimiser's step."""
