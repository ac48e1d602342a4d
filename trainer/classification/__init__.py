"""Text classification: the task that trains classifiers on rows of word ids, and the model folder of a classifier."""
