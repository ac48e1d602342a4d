"""Reads reviews, splits them into words, and writes rows: pure functions and the file format of a dataset.

docs/reference/dataset.md defines the format. Apart from `common`, preprocessing and training share only this package.
`corpus.tokenise`, `corpus.segments` and `common.compiled` need numba, which is not installed on training machines. So
do not import them at the top of any other module of this package.
"""
