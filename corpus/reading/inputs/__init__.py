"""Finds the files of the input and detects their formats and fields. `understanding.understand_inputs` is its front.

It looks at the beginnings of files. The package above it, `corpus.reading`, reads them.
"""
