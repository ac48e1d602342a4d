"""Reviews, words and rows: pure functions and the file format of a dataset, light to import.

docs/dataset.md has the contract. Preprocessing and training share this package and nothing else. `tokenise`, `segments`
and `compiled` need numba, which a machine that trains does not have. Do not import them at the top of another module
here.
"""
