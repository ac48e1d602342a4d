"""Finds, inspects and reads input files for preprocessing, prediction and training on raw texts.

`inputs.inspection.inspect_inputs` takes the addresses that the user gave (`sources.Inputs`) and returns the files
and the format of each. It reads only the beginning of each file. `ranges.read_batches` reads a range of a file and
yields batches of texts, each with the code of its rating or label. `texts.read_texts` reads whole files, in order.

Import pyarrow, orjson, boto3 and Zstandard only in the function that needs them: training machines do not have them.
"""
