"""How the rows of a step are split over ranks: arithmetic that is the same on every rank, without torch."""
