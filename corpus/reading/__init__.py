"""Finds, inspects and reads input files for preprocessing, prediction and training on raw texts.

`inputs.inspection.inspect_inputs` finds the files at the addresses that the user gave (`sources.Inputs`), and detects
the format of each file from its beginning. `ranges.read_batches` reads a range of a file, and yields batches of texts
with the codes of their ratings or labels. `texts.read_texts` reads whole files, in order.

Import pyarrow, orjson, boto3 and Zstandard only in the functions that need them, because they are not installed on
training machines.
"""
