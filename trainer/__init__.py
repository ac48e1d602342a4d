"""Trains a model on a dataset: an ordinary distributed data-parallel program that torchrun starts.

`python -m trainer --help` explains the options. `loop.py` is the training loop. A task (`task.py`) defines the data,
the model and the losses; the tasks are in `classification/` and `embeddings/`. The package knows the layout of datasets
(`corpus`) but nothing of clusters. Its ranks are processes of any speed, on any number of machines, that find each
other through torchrun's environment. Shoal starts them with `python -m trainer.launch`: torchrun, extended to decide
which failures justify a restart.
"""
