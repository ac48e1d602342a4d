"""Options of a training run as data, and those of the optimisation, which all models have."""
