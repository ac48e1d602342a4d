"""Text classification: the training task, on rows of word ids with a label or a rating, and the loading of models."""
