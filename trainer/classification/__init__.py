"""The task of classifying texts: rows of word ids with a label or a rating, to models that tell them apart.

`task.py` is what the loop knows of it, by the table of kinds (trainer/kinds.py). `model_file.py` and `labelling.py` are
for who has a trained model; the rest of the trainer does not need them.
"""
