"""What files are, and how they are read: shared by the jobs, prediction, and whoever learns from raw texts.

Two functions are its front. `inputs.understanding.understand` takes what a person named (`sources.Inputs`) and says
which files are meant and how each is read; it needs no more than their beginnings. `ranges.read_batches` reads a range
of such a file: batches of texts, each with the code of its rating or label. `texts.read_texts` does so with whole
files, in order.

The easy mistake is to import a library for what may not be there: pyarrow, orjson, boto3 and Zstandard are loaded where
a file needs them, because a machine that trains has none of them.
"""
