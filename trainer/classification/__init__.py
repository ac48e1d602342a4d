"""Text classification: its task on rows of word ids with a label or a rating, and reading of trained models."""
