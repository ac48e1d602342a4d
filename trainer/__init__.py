"""A dataset to a trained model: an ordinary distributed data-parallel program, started by torchrun.

`python -m trainer --help` explains the options; `loop.py` is the training loop. What is learnt is a task's (`task.py`):
those are in `classification/` and `embeddings/`. The package knows the dataset's layout (`corpus`) and
nothing of clusters: ranks of any speed, on any number of machines, are processes that find each other through
torchrun's environment. Shoal starts them by `python -m trainer.launch`, which is torchrun and knows which failures are
worth another start.
"""
