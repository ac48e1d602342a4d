"""Finds, recognises and reads input files, for the jobs, for prediction and for training on raw texts.

`inputs.understanding.understand_inputs` takes what a person named (`sources.Inputs`) and returns the files and how each
is read; it reads their beginnings only. `ranges.read_batches` reads a range of such a file: batches of texts, each with
the code of its rating or label. `texts.read_texts` reads whole files, in order.

Import pyarrow, orjson, boto3 and Zstandard only in the function that needs them, because a machine that trains has none
of them.
"""
