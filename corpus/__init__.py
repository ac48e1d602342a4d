"""Reviews, words and rows: pure functions and the file format of a dataset, light to import.

docs/reference/dataset.md is the contract. Preprocessing and training share only this package. `tokenise`, `segments`
and `compiled` need numba, which a machine that trains does not have. Do not import them at the top of another module
here.
"""
