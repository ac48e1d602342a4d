"""The task of classifying texts: rows of word ids with a label or a rating.

The loop finds `task.py` by the registry of tasks (trainer/registry.py). `loading.py` and `labelling.py` are for users
of a trained model; the rest of the trainer does not need them.
"""
