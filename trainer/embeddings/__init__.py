"""Word embeddings: how they are trained, evaluated, saved and read."""
