"""Finds the input files and detects their formats and fields. Start with `inspection.inspect_inputs`.

This package reads only the beginnings of files. The package above it, `corpus.reading`, reads whole files.
"""
