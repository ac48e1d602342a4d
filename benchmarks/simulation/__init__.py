"""Trainings by a modelled clock: the real order and balance, on ranks that nobody has to pay for."""
