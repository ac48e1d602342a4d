"""Finds the input files, and detects their formats and fields. The entry point is `inspection.inspect_inputs`.

This package reads only samples of files. The modules of `corpus.reading` read whole files.
"""
