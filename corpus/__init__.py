"""Reviews, words and rows: pure functions and the file format of a dataset.

docs/reference/dataset.md defines the format. Preprocessing and training share only this package. `tokenise`, `segments`
and `compiled` need numba, which training machines do not have: do not import them at the top of another module here.
"""
