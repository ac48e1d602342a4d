"""Word embeddings: training, evaluation and files."""
