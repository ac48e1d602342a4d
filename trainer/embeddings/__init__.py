"""Word embeddings: how they are learnt, how good they are, and in which files they are kept."""
