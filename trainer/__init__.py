"""Trains a model on a dataset. The package is an ordinary distributed data-parallel program that torchrun starts.

`python -m trainer --help` explains the options. `loop.py` is the training loop. A task (`task.py`) defines the data,
the model and the losses; the tasks are in `classification/` and `embeddings/`. The package knows the layout of datasets
(`corpus`), but knows nothing about clusters. Its ranks are processes that can have different speeds and run on any
number of machines. They find each other through the environment variables that torchrun sets. Shoal starts ranks with
`python -m trainer.launch`, which extends torchrun: it decides which failures justify a restart.
"""
