"""A dataset to a trained model: an ordinary distributed data-parallel program, started by torchrun.

`python -m trainer --help` explains the options; `loop.py` reads from top to bottom. What is learnt is a task's
(`task.py`): `classification/` is the one there is. The package knows the dataset's layout (`corpus`) and nothing of
clusters: ranks of any speed, on any number of machines, are processes that find each other through torchrun's
environment. Shoal starts them by `python -m trainer.launch`, which is torchrun and knows which failures are worth
another start.
"""
